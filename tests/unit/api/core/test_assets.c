#include "tests/unit/test.h"

#include "api/core/assets.h"

static void all_assets_are_sorted_and_found(void **state)
{
    (void)state;
    size_t count;
    const struct asset *assets = assets_all(&count);
    assert_true(count > 5);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            assert_true(span_compare(span_text(assets[i - 1].name), span_text(assets[i].name)) < 0);
        assert_ptr_equal(assets_find(span_text(assets[i].name)), &assets[i]);
    }
}

static void the_assets_of_the_server_exist(void **state)
{
    (void)state;
    static const char *const needed[] = {"web/index.html", "web/favicon.svg", "openapi.yaml",
                                         "DejaVuSans.ttf", "migrations/0001_identity.sql"};
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
        const struct asset *asset = assets_find(span_text(needed[i]));
        assert_non_null(asset);
        assert_true(asset->bytes.size > 100);
    }
    const struct asset *shell = assets_find(SPAN_LITERAL("web/index.html"));
    assert_non_null(memmem(shell->bytes.data, shell->bytes.size, "<!--perfolio:head-->", 20));
}

static void unknown_names_are_not_found(void **state)
{
    (void)state;
    assert_null(assets_find(SPAN_LITERAL("")));
    assert_null(assets_find(SPAN_LITERAL("web/index.htm")));
    assert_null(assets_find(SPAN_LITERAL("web/index.htmlx")));
    assert_null(assets_find(SPAN_LITERAL("web/../openapi.yaml")));
    assert_null(assets_find(SPAN_LITERAL("zzz")));
}

static void suffixes_determine_media_types(void **state)
{
    (void)state;
    assert_string_equal(assets_content_type(SPAN_LITERAL("a.js")),
                        "text/javascript; charset=utf-8");
    assert_string_equal(assets_content_type(SPAN_LITERAL("a.svg")), "image/svg+xml");
    assert_string_equal(assets_content_type(SPAN_LITERAL("a")), "application/octet-stream");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_assets_are_sorted_and_found),
        cmocka_unit_test(the_assets_of_the_server_exist),
        cmocka_unit_test(unknown_names_are_not_found),
        cmocka_unit_test(suffixes_determine_media_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/share/viewer_path.h"
#include "lib/base/err.h"
#include "tests/unit/test.h"

#include <stdio.h>

#define A "0123456789abcdefghijAB"
#define B "ABCDEFGHIJ0123456789ab"

static enum err_code parse(const char *text, struct viewer_path *path)
{
    struct err err;
    return viewer_path_parse(span_text(text), path, &err);
}

static void reads_a_share_and_a_comparison(void **state)
{
    (void)state;
    struct viewer_path path;
    assert_int_equal(parse("/p/" A, &path), ERR_NONE);
    assert_int_equal(path.id_count, 1);
    assert_true(span_equal_text(path.ids[0], A));
    assert_int_equal(path.query.size, 0);
    assert_int_equal(parse("/p/" A "?", &path), ERR_NONE);
    assert_int_equal(parse("/d/" A ".." B "?x=focus%3Aa|b~~c", &path), ERR_NONE);
    assert_int_equal(path.id_count, 2);
    assert_true(span_equal_text(path.ids[0], A));
    assert_true(span_equal_text(path.ids[1], B));
    assert_true(span_equal_text(path.query, "x=focus%3Aa|b~~c"));
}

static void refuses_every_other_path(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "/",
        "/p/",
        "/p/" A "/",
        "/p/" A "#",
        "/p/" A "x",
        "p/" A,
        "//p/" A,
        "/d/" A,
        "/d/" A ".."
        "x",
        "/d/" A "." B,
        "/d/" A ".." B "/",
        "/p/ " A,
        "/p/" A " ",
        "/s/" A,
        "https:/p/" A,
        "/p/" A ".." B,
        "/p/" A "?a#",
    };
    struct viewer_path path;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(parse(bad[i], &path), ERR_INVALID);
}

/* Compares every byte with the list of those that a query may contain unescaped. */
static void accepts_only_bytes_that_a_query_may_contain(void **state)
{
    (void)state;
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "!$&'()*+,-./:;=?@[]^_`{|}~";
    for (int byte = 0; byte < 256; byte++) {
        uint8_t text[3] = {'a', (uint8_t)byte, 'b'};
        struct err err;
        enum err_code code = viewer_path_check_query("view", span_of(text, sizeof(text)), &err);
        bool is_plain = byte && strchr(plain, byte);
        assert_int_equal(code, is_plain ? ERR_NONE : ERR_INVALID);
    }
}

static void accepts_escapes_except_control_characters(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char text[8];
        struct err err;
        snprintf(text, sizeof(text), "a%%%02X", byte);
        enum err_code code = viewer_path_check_query("view", span_text(text), &err);
        assert_int_equal(code, byte < 0x20 || byte == 0x7f ? ERR_INVALID : ERR_NONE);
        code = viewer_path_check_query("view", span_of(text, 3), &err);
        assert_int_equal(code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_share_and_a_comparison),
        cmocka_unit_test(refuses_every_other_path),
        cmocka_unit_test(accepts_only_bytes_that_a_query_may_contain),
        cmocka_unit_test(accepts_escapes_except_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

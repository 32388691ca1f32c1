#include "tests/unit/test.h"

#include "cli/link.h"
#include "lib/base/arena.h"

#include <string.h>

#define ID_A "0123456789abcdefghijAB"
#define ID_B "zyxwvutsrqponmlkjihgCD"

static void reads_ids_and_pages(void **state)
{
    (void)state;
    static const struct {
        const char *text, *base;
    } cases[] = {
        {ID_A, NULL},
        {"https://host/p/" ID_A, "https://host"},
        {"http://localhost:7443/p/" ID_A "/raw", "http://localhost:7443"},
        {"https://host/p/" ID_A ".pb.gz", "https://host"},
        {"https://host/p/" ID_A "?focus=x#y", "https://host"},
        {"https://host/prefix/p/" ID_A "/", "https://host/prefix"},
        {"https://host/api/v1/shares/" ID_A "/top?limit=3", "https://host"},
        {"HTTPS://Host/p/" ID_A, "HTTPS://Host"},
    };
    arena_auto arena = arena_create();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct link link;
        assert_true(link_parse(cases[i].text, arena, &link));
        assert_false(link.is_diff);
        assert_string_equal(link.a, ID_A);
        assert_null(link.b);
        assert_null(link.delete_token);
        if (cases[i].base)
            assert_string_equal(link.base, cases[i].base);
        else
            assert_null(link.base);
    }
}

static void reads_diffs(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct link link;
    assert_true(link_parse(ID_A ".." ID_B, arena, &link));
    assert_true(link.is_diff);
    assert_null(link.base);
    assert_true(link_parse("https://host:1/d/" ID_A ".." ID_B "?mode=x", arena, &link));
    assert_true(link.is_diff);
    assert_string_equal(link.base, "https://host:1");
    assert_string_equal(link.a, ID_A);
    assert_string_equal(link.b, ID_B);
}

static void takes_the_delete_token_from_the_fragment(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct link link;
    assert_true(link_parse("https://host/p/" ID_A "/delete#secret", arena, &link));
    assert_string_equal(link.delete_token, "secret");
    assert_true(link_parse("https://host/p/" ID_A "/delete#", arena, &link));
    assert_null(link.delete_token);
}

static void refuses_invalid_links(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "cpu.pb.gz",
        "0123456789abcdefghijA",
        ID_A "x",
        ID_A ".pb.gz",
        "0123456789abcdefghij-B",
        "https://host/p/",
        "https://host/p/" ID_A "x",
        "https://host/d/" ID_A "..",
        "https://host/debug/pprof/profile",
        "https://",
        "ftp://host/p/" ID_A,
        ID_A ".." ID_B "x",
    };
    arena_auto arena = arena_create();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct link link;
        assert_false(link_parse(cases[i], arena, &link));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ids_and_pages),
        cmocka_unit_test(reads_diffs),
        cmocka_unit_test(takes_the_delete_token_from_the_fragment),
        cmocka_unit_test(refuses_invalid_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

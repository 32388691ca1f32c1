#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/span_utf8.h"

static void assert_span(struct span span, const char *text)
{
    if (!span_equal_text(span, text))
        fail_msg("'%.*s' is not '%s'", SPAN_PRINT(span), text);
}

static void knows_utf8(void **state)
{
    (void)state;
    assert_true(span_is_utf8(span_text("aé€😀")));
    assert_false(span_is_utf8(span_text("\xc0\xaf")));
    assert_false(span_is_utf8(span_text("\xed\xa0\x80")));
    assert_false(span_is_utf8(span_text("\xf4\x90\x80\x80")));
    assert_false(span_is_utf8(span_text("\xe2\x82")));
    assert_int_equal(span_utf8_size(span_text("€a")), 3);
    assert_int_equal(span_utf8_size(span_text("\xe2\x82")), 0);
    assert_int_equal(span_utf8_size(span_text("")), 0);
}

static void makes_text_utf8(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    static const char *const cases[][2] = {
        {"aé€😀", "aé€😀"},
        {"evil\xff\xfe", "evil??"},
        {"a\xff€", "a?€"},
        {"\x80\xc0\xaf", "???"},
        {"\xe2\x82z", "??z"},
        /* Truncated within a character. */
        {"caf\xc3", "caf"},
        {"1\xe2\x82", "1"},
        {"\xf0\x9f\x98", ""},
        {"\xff\xf0", "?"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct span made = span_make_utf8(span_text(cases[i][0]), arena);
        assert_true(span_is_utf8(made));
        assert_span(made, cases[i][1]);
    }
    const struct span fine = span_text("é");
    assert_ptr_equal(span_make_utf8(fine, arena).data, fine.data);
    assert_span(span_cut_utf8(fine, 2), "é");
    assert_span(span_cut_utf8(fine, 1), "");
    assert_span(span_cut_utf8(span_text("a€"), 3), "a");
    assert_span(span_cut_utf8(span_text("abc"), 2), "ab");
    assert_int_equal(span_cut_utf8(span_text("\x80\x80\x80\x80\x80\x80\x80\x80"), 7).size, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_utf8),
        cmocka_unit_test(makes_text_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/formats/text_input.h"

static void assert_text(struct span bytes, const char *expected)
{
    struct span text;
    struct err err;
    buf_auto storage;
    buf_init(&storage, 1000);
    assert_int_equal(text_input_read(bytes, &storage, &text, &err), ERR_NONE);
    assert_true(span_equal_text(text, expected));
}

static void byte_order_marks_are_removed_and_utf16_is_converted(void **state)
{
    (void)state;
    assert_text(SPAN_LITERAL("plain"), "plain");
    assert_text(SPAN_LITERAL(""), "");
    assert_text(SPAN_LITERAL("\xef\xbb\xbf"
                             "b"),
                "b");
    assert_text(SPAN_LITERAL("\xff\xfe"
                             "a\0\xe9\0\xac\x20"),
                "a\xc3\xa9\xe2\x82\xac");
    assert_text(SPAN_LITERAL("\xfe\xff\0a\0\xe9\x20\xac"), "a\xc3\xa9\xe2\x82\xac");
    assert_text(SPAN_LITERAL("\xff\xfe\x34\xd8\x1e\xdd"), "\xf0\x9d\x84\x9e");
}

static void an_unpaired_surrogate_is_replaced(void **state)
{
    (void)state;
    assert_text(SPAN_LITERAL("\xff\xfe\x34\xd8"), "\xef\xbf\xbd");
    assert_text(SPAN_LITERAL("\xff\xfe\x1e\xdd"
                             "a\0"),
                "\xef\xbf\xbd"
                "a");
    assert_text(SPAN_LITERAL("\xff\xfe\x34\xd8"
                             "a\0"),
                "\xef\xbf\xbd"
                "a");
}

static void output_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct span text;
    struct err err;
    buf_auto storage;
    buf_init(&storage, 2);
    struct span odd = SPAN_LITERAL("\xff\xfe"
                                   "a");
    struct span large = SPAN_LITERAL("\xff\xfe"
                                     "a\0b\0c\0");
    assert_int_equal(text_input_read(odd, &storage, &text, &err), ERR_INVALID);
    assert_int_equal(text_input_read(large, &storage, &text, &err), ERR_TOO_LARGE);
}

static void control_characters_make_it_binary(void **state)
{
    (void)state;
    assert_false(text_input_is_binary(SPAN_LITERAL("a\tb\r\n\x1b[0m \xff\xfe")));
    assert_true(text_input_is_binary(SPAN_LITERAL("a\x08")));
    assert_true(text_input_is_binary(SPAN_LITERAL("a\0b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_order_marks_are_removed_and_utf16_is_converted),
        cmocka_unit_test(an_unpaired_surrogate_is_replaced),
        cmocka_unit_test(output_that_does_not_fit_is_refused),
        cmocka_unit_test(control_characters_make_it_binary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

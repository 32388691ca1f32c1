#include "tests/unit/test.h"

#include "lib/base/err.h"
#include "lib/input/share_text.h"

#include <string.h>

static int64_t seconds_of(const char *text)
{
    struct err err;
    int64_t seconds = -1;
    const enum err_code code = share_text_parse_expires(span_text(text), &seconds, &err);
    assert_int_equal(code == ERR_NONE, seconds >= 0);
    return seconds;
}

static void expiry_is_hours_days_weeks_or_never(void **state)
{
    (void)state;
    assert_int_equal(seconds_of("never"), 0);
    assert_int_equal(seconds_of("12h"), 12 * 3600);
    assert_int_equal(seconds_of("30d"), 30 * 24 * 3600);
    assert_int_equal(seconds_of("8w"), 8 * 7 * 24 * 3600);
    assert_int_equal(seconds_of("36500d"), INT64_C(36500) * 24 * 3600);
    static const char *const wrong[] = {"",     "h",   "xyz",  "12",     "12m",
                                        "0h",   "-1d", "1.5d", "36501d", "99999999999999999999w",
                                        "Never"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(seconds_of(wrong[i]), -1);
}

static void a_text_has_a_maximum_length_and_no_control_characters(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(share_text_check("title", SPAN_LITERAL("\xc3\xa9\xc3\xa9"), 2, true, &err),
                     ERR_NONE);
    assert_int_equal(share_text_check("title", SPAN_LITERAL("abc"), 2, true, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "title has 3 characters"));
    assert_int_equal(share_text_check("title", SPAN_LITERAL("a\nb"), 9, true, &err), ERR_INVALID);
    assert_int_equal(share_text_check("text", SPAN_LITERAL("a\nb"), 9, false, &err), ERR_NONE);
    assert_int_equal(share_text_check("text", SPAN_LITERAL("\x1b"), 9, false, &err), ERR_INVALID);
    assert_int_equal(share_text_check("text", SPAN_LITERAL("\xff"), 9, false, &err), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expiry_is_hours_days_weeks_or_never),
        cmocka_unit_test(a_text_has_a_maximum_length_and_no_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "cli/value.h"

static void assert_value(double value, const char *unit, const char *expected)
{
    char text[VALUE_TEXT_BYTES];
    assert_string_equal(value_format(value, span_text(unit), text), expected);
}

static void writes_values_in_the_unit_that_fits(void **state)
{
    (void)state;
    assert_value(0, "nanoseconds", "0 ns");
    assert_value(999, "nanoseconds", "999 ns");
    assert_value(1500, "nanoseconds", "1.50 µs");
    assert_value(1.28e9, "nanoseconds", "1.28 s");
    assert_value(-90e9, "nanoseconds", "-1.50 min");
    assert_value(1500, "milliseconds", "1.50 s");
    assert_value(1023, "bytes", "1023 B");
    assert_value(3.5 * 1048576, "bytes", "3.50 MiB");
    assert_value(2048, "kilobytes", "2.00 MiB");
    assert_value(1e18, "bytes", "888.18 PiB");
    assert_value(0x1p62, "bytes", "4.00 EiB");
    assert_value(999.99e6, "nanoseconds", "999.99 ms");
    assert_value(999.996e6, "nanoseconds", "1.00 s");
    assert_value(-999.996e6, "nanoseconds", "-1.00 s");
    assert_value(999999, "nanoseconds", "1.00 ms");
    assert_value(59.9999e9, "nanoseconds", "1.00 min");
    assert_value(3599.9e9, "nanoseconds", "1.00 h");
    assert_value(1048575, "bytes", "1.00 MiB");
    assert_value(0x1p60 - 0x1p40, "bytes", "1.00 EiB");
    assert_value(1234567, "count", "1,234,567");
    assert_value(-1234, "count", "-1,234");
    assert_value(12, "", "12");
    assert_value(12, "wombats", "12 wombats");
    assert_value(25, "count/10", "2.5");
    assert_value(-12345678, "count/1000", "-12,345.678");
    assert_value(1001e6, "count/1000000", "1,001");
    assert_value(-5, "count/100", "-0.05");
    assert_value(9.3e18, "count", "9.3e+18");
}

static void a_unit_cannot_control_the_terminal(void **state)
{
    (void)state;
    assert_value(1, "\033[31m", "1 ");
    assert_value(1, "wom\nbats", "1 wom");
    assert_value(1, "a-unit-that-is-much-too-long-to-be-shown", "1 a-unit-that-is-much-");
}

static void deltas_have_a_sign(void **state)
{
    (void)state;
    char text[VALUE_TEXT_BYTES];
    assert_string_equal(value_format_delta(1e9, SPAN_LITERAL("nanoseconds"), text), "+1.00 s");
    assert_string_equal(value_format_delta(-1e9, SPAN_LITERAL("nanoseconds"), text), "-1.00 s");
    assert_string_equal(value_format_delta(0, SPAN_LITERAL("count"), text), "0");
}

static void counts_have_separators(void **state)
{
    (void)state;
    char text[VALUE_TEXT_BYTES];
    assert_string_equal(value_count(999, text), "999");
    assert_string_equal(value_count(1000, text), "1,000");
    assert_string_equal(value_count(INT64_MIN, text), "-9,223,372,036,854,775,808");
}

static void times_are_shown_relative_to_now(void **state)
{
    (void)state;
    char text[VALUE_TEXT_BYTES];
    const int64_t now = 1767323045; /* 2026-01-02T03:04:05Z */
    assert_string_equal(value_time("2026-01-02T03:04:05.678Z", text), "2026-01-02 03:04 UTC");
    assert_string_equal(value_time("yesterday", text), "yesterday");
    assert_string_equal(value_distance("2026-02-01T03:04:05Z", now, text), "in 30 days");
    assert_string_equal(value_distance("2026-01-02T02:04:05Z", now, text), "60 min ago");
    assert_string_equal(value_distance("2026-01-02T04:34:05.000Z", now, text), "in 90 min");
    assert_string_equal(value_distance("2026-01-03T04:00:00Z", now, text), "in 24 h");
    assert_string_equal(value_distance("", now, text), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_values_in_the_unit_that_fits),
        cmocka_unit_test(a_unit_cannot_control_the_terminal),
        cmocka_unit_test(deltas_have_a_sign),
        cmocka_unit_test(counts_have_separators),
        cmocka_unit_test(times_are_shown_relative_to_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "lib/profile/quantity.h"

static void values_are_shown_in_the_largest_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *unit;
        const char *text;
    } cases[] = {
        {0, "nanoseconds", "0 ns"},
        {999, "nanoseconds", "999 ns"},
        {1500, "nanoseconds", "1.50 \xc2\xb5s"},
        {1.284e9, "nanoseconds", "1.28 s"},
        {36317, "microseconds", "36.3 ms"},
        {14, "seconds", "14 s"},
        {7.5e12, "nanoseconds", "2.08 h"},
        {1536, "bytes", "1.50 KiB"},
        {116e9, "bytes", "108 GiB"},
        {1e18, "bytes", "888 PiB"},
        {0x1p62, "bytes", "4 EiB"},
        {400 * 86400.0, "seconds", "400 d"},
        {7, "count", "7"},
        {12345, "count", "12,345"},
        {-12345, "count", "-12,345"},
        {12345678, "count", "12.35 M"},
        {5, "furlongs", "5 furlongs"},
        {35, "count/10", "3.50"},
        {1001e6, "count/1000000", "1,001"},
        {-2e9, "nanoseconds", "-2 s"},
        {3, "", "3"},
        /* Rounding reaches the next unit or digit. */
        {999.7e6, "nanoseconds", "1.00 s"},
        {999.4e6, "nanoseconds", "999 ms"},
        {59.97e9, "nanoseconds", "1.00 min"},
        {99.96e6, "nanoseconds", "100 ms"},
        {9.996e6, "nanoseconds", "10.0 ms"},
        {1048575, "bytes", "1.00 MiB"},
        {999999.7, "count", "1.00 M"},
        {999999999, "count", "1.00 G"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[QUANTITY_TEXT_BYTES];
        assert_string_equal(quantity_format(cases[i].value, span_text(cases[i].unit), text),
                            cases[i].text);
    }
}

static void percentages_have_the_digits_of_the_page(void **state)
{
    static const struct {
        double percent;
        const char *text;
    } cases[] = {{0, "0 %"},         {0.004, "<0.01 %"}, {5.255, "5.25 %"},
                 {5.245, "5.25 %"},  {5.125, "5.13 %"},  {56.25, "56.3 %"},
                 {70.588, "70.6 %"}, {99.94, "99.9 %"},  {99.96, "100 %"}};
    char text[QUANTITY_TEXT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(quantity_format_percent(cases[i].percent, text), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_shown_in_the_largest_unit_that_fits),
        cmocka_unit_test(percentages_have_the_digits_of_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

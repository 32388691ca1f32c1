#include "tests/unit/test.h"

#include "lib/profile/unit.h"

static void factors_lead_to_the_finer_unit_only(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        int64_t factor;
    } cases[] = {
        {"seconds", "ns", 1000000000},
        {"ns", "seconds", 0},
        {"ms", "milliseconds", 1},
        {"\xc2\xb5s", "\xce\xbcs", 1},
        {"MiB", "KiB", 1024},
        {"count", "count/10", 10},
        {"count", "count/1000000", 1000000},
        {"count/100", "count/100000", 1000},
        {"count/1000", "count/10", 0},
        {"count", "count/10000000", 0}, /* a unit that is not decimal */
        {"count", "", 0},
        {"count/10", "ns", 0},
        {"bytes", "ns", 0},
        {"ticks", "ticks", 1},
        {"ticks", "jiffies", 0},
        {"", "", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct span from = span_text(cases[i].from), to = span_text(cases[i].to);
        assert_int_equal(unit_factor(from, to), cases[i].factor);
        assert_int_equal(unit_is_like(from, to), unit_is_like(to, from));
    }
    assert_true(unit_is_like(SPAN_LITERAL("count/1000"), SPAN_LITERAL("count/10")));
    assert_false(unit_is_like(SPAN_LITERAL("count"), SPAN_LITERAL("bytes")));
}

static void decimal_units_are_recognized(void **state)
{
    (void)state;
    assert_int_equal(unit_decimals(SPAN_LITERAL("count/1000")), 3);
    const char *others[] = {"count",      "count/",   "count/1",
                            "count/100s", "bytes/10", "count/10000000"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(unit_decimals(span_text(others[i])), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_lead_to_the_finer_unit_only),
        cmocka_unit_test(decimal_units_are_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

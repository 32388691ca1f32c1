#include "tests/unit/test.h"

#include "lib/base/clock.h"

static void formats_a_time_in_utc(void **state)
{
    (void)state;
    char text[CLOCK_TEXT_BYTES];
    assert_string_equal(clock_format(INT64_C(1767323045678000000), text),
                        "2026-01-02T03:04:05.678Z");
}

static void sleeps_at_least_as_long_as_requested(void **state)
{
    (void)state;
    int64_t start_ns = clock_monotonic_ns();
    clock_sleep_ms(2);
    assert_true(clock_monotonic_ns() - start_ns >= 2 * CLOCK_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_a_time_in_utc),
        cmocka_unit_test(sleeps_at_least_as_long_as_requested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How much of a sum of rates is missing where series are profiled in turn. */
#include "store/values/partial_coverage.h"
#include "tests/unit/test.h"

#include <math.h>

/* Adds a series with the rate 1: spans of duration from offset on, once per interval, in [0, end).
 */
static void add(struct partial_coverage *partial, int64_t duration, int64_t interval,
                int64_t offset, int64_t end)
{
    struct coverage covered = {0};
    double sum = 0;
    for (int64_t at = offset; at + duration <= end; at += interval) {
        coverage_add(&covered, at, at + duration);
        sum += (double)duration;
    }
    coverage_close(&covered, 0);
    partial_coverage_add(partial, &covered, sum, duration);
    coverage_fini(&covered);
}

static void check(struct partial_coverage *partial, double wanted)
{
    const double lack = partial_coverage_lack(partial);
    if (fabs(lack - wanted) > 0.01)
        fail_msg("%f is missing, not %f", lack, wanted);
    partial_coverage_fini(partial);
}

static void series_in_turn_lack_a_part(void **state)
{
    (void)state;
    struct partial_coverage partial = {0};
    for (int64_t i = 0; i < 6; i++)
        add(&partial, 10, 60, i * 10, 60000);
    check(&partial, 1 - 1 / 6.0);
    add(&partial, 60, 60, 0, 6000); /* a continuous one and one for a sixth of the time */
    add(&partial, 10, 60, 20, 6000);
    check(&partial, 1 - (1 + 1 / 6.0) / 2);
}

static void series_at_the_same_time_lack_nothing(void **state)
{
    (void)state;
    struct partial_coverage partial = {0};
    check(&partial, 0);
    for (int64_t i = 0; i < 6; i++)
        add(&partial, 10, 60, 0, 6000);
    check(&partial, 0);
    for (int64_t i = 0; i < 6; i++)
        add(&partial, 60, 60, 0, 6000);
    check(&partial, 0);
    add(&partial, 10, 60, 0, 6000); /* a single series */
    check(&partial, 0);
}

/* Two profiles of each series suffice if they are far apart; one is not enough to know. */
static void infrequent_series_lack_a_part(void **state)
{
    (void)state;
    struct partial_coverage partial = {0};
    for (int64_t i = 0; i < 10; i++)
        add(&partial, 30, 1200, i * 30, 2400);
    check(&partial, 1 - 600 / (600.0 * 10) * (1200 + 300) / 1230);
    for (int64_t i = 0; i < 10; i++)
        add(&partial, 30, 3600, i * 30, 3600);
    assert_int_equal(partial_coverage_singles(&partial), 10);
    check(&partial, 0);
    for (int64_t i = 0; i < 10; i++)
        add(&partial, 30, 3600, 60, 3600); /* all at once */
    assert_int_equal(partial_coverage_singles(&partial), 0);
    check(&partial, 0);
    for (int64_t i = 0; i < 3; i++)
        add(&partial, 40 * 60, 60 * 60, i * 600,
            2 * 3600); /* a host that was down for 20 minutes */
    check(&partial, 0);
}

/* One series replaces another; both are profiled for a sixth of the time. */
static void successive_series_lack_nothing(void **state)
{
    (void)state;
    struct partial_coverage partial = {0};
    add(&partial, 10, 60, 0, 60000);
    add(&partial, 10, 60, 60000, 120000);
    check(&partial, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series_in_turn_lack_a_part),
        cmocka_unit_test(series_at_the_same_time_lack_nothing),
        cmocka_unit_test(infrequent_series_lack_a_part),
        cmocka_unit_test(successive_series_lack_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

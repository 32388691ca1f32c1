/* The rate of new connections of each site, with a clock of the test's own. */
#include "api/server/connection_rate.h"
#include "lib/base/clock.h"
#include "tests/unit/test.h"

enum { PER_SECOND = 8, BURST = PER_SECOND * CONNECTION_RATE_BURST_S };

static int64_t now_ns;

static int64_t read_clock(void)
{
    return now_ns;
}

static struct connection_rate *create(void)
{
    now_ns = CLOCK_NS_PER_S;
    return connection_rate_create(PER_SECOND, read_clock);
}

static int take_all(struct connection_rate *rate, uint64_t site)
{
    int count = 0;
    while (count < 10 * BURST && connection_rate_take(rate, site))
        count++;
    return count;
}

static void each_site_has_its_own_rate(void **state)
{
    (void)state;
    struct connection_rate *rate = create();
    assert_int_equal(take_all(rate, 1), BURST);
    assert_int_equal(take_all(rate, 2), BURST);
    now_ns += 10 * CLOCK_NS_PER_S;
    assert_int_equal(take_all(rate, 1), 10 * PER_SECOND);
    now_ns += INT64_C(1000000) * CLOCK_NS_PER_S;
    assert_int_equal(take_all(rate, 1), BURST);
    connection_rate_destroy(rate);
}

static void connections_that_are_given_back_do_not_count(void **state)
{
    (void)state;
    struct connection_rate *rate = create();
    for (int i = 0; i < 10 * BURST; i++) {
        assert_true(connection_rate_take(rate, 1));
        connection_rate_give_back(rate, 1);
    }
    assert_int_equal(take_all(rate, 1), BURST);
    connection_rate_destroy(rate);
}

static void failed_handshakes_count_several_times(void **state)
{
    (void)state;
    struct connection_rate *rate = create();
    int count = 0;
    for (; connection_rate_take(rate, 1); count++)
        connection_rate_charge_failed(rate, 1);
    assert_int_equal(count, BURST / CONNECTION_RATE_FAILED);
    /* However many more fail, the site waits at most twice the time of a burst. */
    for (int i = 0; i < 10 * BURST; i++)
        connection_rate_charge_failed(rate, 1);
    now_ns += CONNECTION_RATE_BURST_S * CLOCK_NS_PER_S;
    assert_int_equal(take_all(rate, 1), 0);
    now_ns += CLOCK_NS_PER_S;
    assert_int_equal(take_all(rate, 1), PER_SECOND);
    connection_rate_destroy(rate);
}

/* More sites than the table has entries: each is served, and one in use is not forgotten. */
static void any_number_of_sites_is_served(void **state)
{
    (void)state;
    struct connection_rate *rate = create();
    assert_int_equal(take_all(rate, UINT64_MAX), BURST);
    for (uint64_t site = 0; site < 100000; site++) {
        now_ns++;
        assert_true(connection_rate_take(rate, site));
        if (site % 100 == 0)
            assert_false(connection_rate_take(rate, UINT64_MAX));
    }
    connection_rate_destroy(rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_site_has_its_own_rate),
        cmocka_unit_test(connections_that_are_given_back_do_not_count),
        cmocka_unit_test(failed_handshakes_count_several_times),
        cmocka_unit_test(any_number_of_sites_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

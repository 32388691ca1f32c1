#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/io/debuginfod_retry.h"

static void absent_files_are_requested_less_and_less_often(void **state)
{
    (void)state;
    static const int64_t expected[] = {600, 3600, 21600, 86400, 86400, 86400};
    for (unsigned i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        assert_int_equal(debuginfod_later_s(DEBUGINFOD_ABSENT, i + 1, 0), expected[i]);
    assert_int_equal(debuginfod_later_s(DEBUGINFOD_ABSENT, 0, 0), 600);
    assert_int_equal(debuginfod_later_s(DEBUGINFOD_ABSENT, UINT32_MAX, 0), 86400);
    assert_int_equal(debuginfod_later_s(DEBUGINFOD_FOUND, 1, 0), 0);
    assert_int_equal(debuginfod_later_s(DEBUGINFOD_REFUSED, 1, 0), 86400);
}

static void a_failed_server_is_retried_soon_but_not_before_retry_after(void **state)
{
    (void)state;
    static const int64_t expected[] = {60, 300, 1800, 1800};
    for (unsigned i = 0; i < sizeof(expected) / sizeof(*expected); i++)
        assert_int_equal(debuginfod_later_s(DEBUGINFOD_UNREACHABLE, i + 1, 0), expected[i]);
    assert_int_equal(debuginfod_later_s(DEBUGINFOD_UNREACHABLE, 1, 30), 60);
    assert_int_equal(debuginfod_later_s(DEBUGINFOD_UNREACHABLE, 1, 7200), 7200);
    assert_int_equal(debuginfod_later_s(DEBUGINFOD_UNREACHABLE, 1, INT32_MAX), 86400);
}

static void pauses_grow_and_differ_by_chance(void **state)
{
    (void)state;
    assert_int_equal(debuginfod_pause_ms(2, 0), 1000);
    assert_int_equal(debuginfod_pause_ms(3, 0), 3000);
    assert_int_equal(debuginfod_pause_ms(4, 0), 9000);
    assert_int_equal(debuginfod_pause_ms(1000, 0), 9000);
    assert_in_range(debuginfod_pause_ms(2, UINT32_MAX), 500, 501);
    assert_in_range(debuginfod_pause_ms(3, UINT32_MAX / 2), 2250, 2251);
}

static void fail_times(struct debuginfod_breaker *breaker, int count, int64_t now_ns)
{
    for (int i = 0; i < count; i++) {
        assert_true(debuginfod_breaker_may(breaker, now_ns));
        debuginfod_breaker_note(breaker, true, now_ns);
    }
}

static void a_failed_host_gets_one_probe_after_a_pause(void **state)
{
    (void)state;
    struct debuginfod_breaker breaker = {0};
    const int64_t now = 5 * CLOCK_NS_PER_S, later = now + 60 * CLOCK_NS_PER_S;
    fail_times(&breaker, 5, now);
    assert_false(debuginfod_breaker_may(&breaker, now));
    assert_false(debuginfod_breaker_may(&breaker, later - 1));
    assert_true(debuginfod_breaker_may(&breaker, later));
    assert_false(debuginfod_breaker_may(&breaker, later)); /* a request is running */
    debuginfod_breaker_note(&breaker, true, later);
    assert_false(debuginfod_breaker_may(&breaker, later + 1)); /* again for a minute */
    assert_true(debuginfod_breaker_may(&breaker, later + 60 * CLOCK_NS_PER_S));
    debuginfod_breaker_note(&breaker, false, later);
    for (int i = 0; i < 3; i++)
        assert_true(debuginfod_breaker_may(&breaker, later));
}

static void only_failures_in_a_row_count(void **state)
{
    (void)state;
    struct debuginfod_breaker breaker = {0};
    for (int i = 0; i < 10; i++) {
        fail_times(&breaker, 4, 0);
        debuginfod_breaker_note(&breaker, false, 0);
    }
    assert_true(debuginfod_breaker_may(&breaker, 0));
}

static void a_canceled_probe_is_left_to_the_next_request(void **state)
{
    (void)state;
    struct debuginfod_breaker breaker = {0};
    const int64_t later = 60 * CLOCK_NS_PER_S;
    fail_times(&breaker, 5, 0);
    assert_true(debuginfod_breaker_may(&breaker, later));
    debuginfod_breaker_forgo(&breaker);
    assert_true(debuginfod_breaker_may(&breaker, later));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_files_are_requested_less_and_less_often),
        cmocka_unit_test(a_failed_server_is_retried_soon_but_not_before_retry_after),
        cmocka_unit_test(pauses_grow_and_differ_by_chance),
        cmocka_unit_test(a_failed_host_gets_one_probe_after_a_pause),
        cmocka_unit_test(only_failures_in_a_row_count),
        cmocka_unit_test(a_canceled_probe_is_left_to_the_next_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "agent/profile/window_time.h"
#include "lib/base/clock.h"

#define S CLOCK_NS_PER_S
#define MS CLOCK_NS_PER_MS

/* The start of a window that began at 1000 s of the wall clock, given how far both clocks went. */
static int64_t start(int64_t wall_ns, int64_t monotonic_ns)
{
    const struct window_time begin = {.wall_ns = 1000 * S, .monotonic_ns = 50 * S};
    const struct window_time end = {.wall_ns = begin.wall_ns + wall_ns,
                                    .monotonic_ns = begin.monotonic_ns + monotonic_ns};
    return window_time_start(&begin, &end);
}

static void a_window_begins_when_it_began(void **state)
{
    (void)state;
    assert_int_equal(start(10 * S, 10 * S), 1000 * S);
    assert_int_equal(start(10 * S + 900 * MS, 10 * S), 1000 * S);
    assert_int_equal(start(10 * S - 900 * MS, 10 * S), 1000 * S);
}

static void a_window_with_a_suspend_keeps_its_length_and_end(void **state)
{
    (void)state;
    assert_int_equal(start(8 * 3600 * S + 10 * S, 10 * S), 1000 * S + 8 * 3600 * S);
    assert_int_equal(start(12 * S, 10 * S), 1002 * S);
}

static void a_window_with_a_clock_that_was_set_back_keeps_its_length_and_end(void **state)
{
    (void)state;
    assert_int_equal(start(-500 * S, 10 * S), 490 * S);
    assert_int_equal(start(5 * S, 10 * S), 995 * S);
}

static void a_window_has_a_positive_length(void **state)
{
    (void)state;
    assert_int_equal(start(0, 0), 1000 * S - 1);
    assert_int_equal(start(-900 * MS, 10 * MS), 1000 * S - 910 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_begins_when_it_began),
        cmocka_unit_test(a_window_with_a_suspend_keeps_its_length_and_end),
        cmocka_unit_test(a_window_with_a_clock_that_was_set_back_keeps_its_length_and_end),
        cmocka_unit_test(a_window_has_a_positive_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

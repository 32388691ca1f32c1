/* Gauges of several processes in one series. */
#include "tests/unit/test.h"

#include "store/values/interleaving.h"

enum { COUNT = 12 };

/* Whether count snapshots that are step_s apart are found to be of several processes. Their senders
 * state duration_s, that of the first snapshot first_duration_s. */
static bool is_found(int64_t step_s, int64_t duration_s, int64_t first_duration_s, uint32_t count)
{
    const int64_t second = 1000000000;
    struct interleaving interleaving = {0};
    int64_t times_ns[COUNT];
    for (uint32_t i = 0; i < count; i++) {
        times_ns[i] = step_s * second * i;
        interleaving_add(&interleaving, (i ? duration_s : first_duration_s) * second);
    }
    return interleaving_is_found(&interleaving, times_ns, count);
}

static void one_sender_is_not_interleaved(void **state)
{
    (void)state;
    assert_false(is_found(15, 15, 15, COUNT));
    assert_false(is_found(15, 15, 20, COUNT));
    assert_false(is_found(15, 14, 1, COUNT));
    assert_false(is_found(60, 15, 15, COUNT));
    assert_false(is_found(15, 0, 0, COUNT));
}

static void two_senders_are_interleaved(void **state)
{
    (void)state;
    assert_true(is_found(15, 30, 30, COUNT));
    assert_true(is_found(15, 30, 11, COUNT));
    assert_true(is_found(5, 15, 15, COUNT));
}

static void few_snapshots_show_nothing(void **state)
{
    (void)state;
    assert_false(is_found(15, 30, 30, 1));
    assert_false(is_found(15, 30, 30, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sender_is_not_interleaved),
        cmocka_unit_test(two_senders_are_interleaved),
        cmocka_unit_test(few_snapshots_show_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

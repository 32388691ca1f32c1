#include "tests/unit/test.h"

#include "agent/processes.h"
#include "agent/side_band.h"
#include "lib/base/clock.h"

static void a_loss_during_a_scan_waits_for_the_next_second(void **state)
{
    (void)state;
    struct binaries *binaries = binaries_create();
    const struct processes_options options = {.has_targets = true};
    struct processes *processes = processes_create(binaries, &options);
    const struct side_band_event lost = {.kind = SIDE_BAND_LOST, .lost_count = 1};
    struct processes_counts counts;
    for (int i = 0; i < 3; i++)
        processes_apply(processes, &lost);
    processes_sweep(processes, clock_monotonic_ns() - CLOCK_NS_PER_S / 2);
    processes_count(processes, &counts);
    assert_int_equal(counts.scans, 1);
    /* It is not forgotten, and done once. */
    processes_sweep(processes, clock_monotonic_ns() + 2 * CLOCK_NS_PER_S);
    processes_sweep(processes, clock_monotonic_ns() + 4 * CLOCK_NS_PER_S);
    processes_count(processes, &counts);
    assert_int_equal(counts.scans, 2);
    processes_destroy(processes);
    binaries_destroy(binaries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_during_a_scan_waits_for_the_next_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PARTS = 1000, CALLERS = 6, PART_NS = 50000 };

struct counts {
    atomic_int done[PARTS];
    atomic_int at_once;
    atomic_int most_at_once;
};

static void count_part(void *context, size_t i)
{
    struct counts *counts = context;
    atomic_fetch_add(&counts->done[i], 1);
    const int now = atomic_fetch_add(&counts->at_once, 1) + 1;
    int most = atomic_load(&counts->most_at_once);
    while (most < now && !atomic_compare_exchange_weak(&counts->most_at_once, &most, now))
        ;
    const int64_t end_ns = clock_thread_cpu_ns() + PART_NS;
    while (clock_thread_cpu_ns() < end_ns)
        ;
    atomic_fetch_sub(&counts->at_once, 1);
}

static void runs_each_part_once(void **state)
{
    (void)state;
    static const size_t wanted[] = {0, 1, 2, 7, PARTS};
    for (size_t n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
        static struct counts counts;
        memset(&counts, 0, sizeof(counts));
        const int64_t before_ns = parallel_cpu_ns();
        parallel_for(wanted[n], count_part, &counts);
        const int64_t used_ns = parallel_cpu_ns() - before_ns;
        for (size_t i = 0; i < PARTS; i++)
            assert_int_equal(counts.done[i], i < wanted[n]);
        assert_true((size_t)counts.most_at_once <= parallel_size());
        assert_true(used_ns > (int64_t)wanted[n] * PART_NS); /* whichever thread ran them */
    }
}

static void *call_parallel_for(void *argument)
{
    parallel_for(PARTS, count_part, argument);
    return NULL;
}

/* All callers work, with at most one helper more than processors. */
static void concurrent_calls_share_the_helpers(void **state)
{
    (void)state;
    static struct counts counts;
    pthread_t threads[CALLERS];
    memset(&counts, 0, sizeof(counts));
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_parallel_for, &counts), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(counts.done[i], CALLERS);
    assert_in_range(counts.most_at_once, 1, CALLERS + parallel_size() - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_each_part_once),
        cmocka_unit_test(concurrent_calls_share_the_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

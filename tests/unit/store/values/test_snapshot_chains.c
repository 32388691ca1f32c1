/* Which snapshots of a counter continue each other: set-back clocks, several processes, restarts.
 */
#include "lib/base/mem.h"
#include "store/values/counter_rows.h"
#include "store/values/snapshot_chains.h"
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

enum { SNAPSHOTS_MAX = 400, STACKS = 3 };

/* Snapshots with one number per stack, in any order of time. */
struct series {
    int64_t times_s[SNAPSHOTS_MAX];
    int64_t values[SNAPSHOTS_MAX][STACKS];
    uint32_t count;
};

static void add(struct series *series, int64_t time_s, int64_t total)
{
    series->times_s[series->count] = time_s;
    for (uint32_t j = 0; j < STACKS; j++)
        series->values[series->count][j] = total * (j + 1) / 6;
    series->values[series->count][0] += total - total * 1 / 6 - total * 2 / 6 - total * 3 / 6;
    series->count++;
}

static void sort_by_time(struct series *series)
{
    for (uint32_t i = 1; i < series->count; i++)
        for (uint32_t j = i; j && series->times_s[j] < series->times_s[j - 1]; j--) {
            int64_t time_s = series->times_s[j], values[STACKS];
            memcpy(values, series->values[j], sizeof(values));
            series->times_s[j] = series->times_s[j - 1];
            memcpy(series->values[j], series->values[j - 1], sizeof(values));
            series->times_s[j - 1] = time_s;
            memcpy(series->values[j - 1], values, sizeof(values));
        }
}

/* Sets links, and returns the sum of all increases. */
static int64_t find(struct series *series, struct snapshot_link *links)
{
    struct counter_row *rows = mem_new(struct counter_row, (size_t)SNAPSHOTS_MAX * STACKS);
    uint64_t row_count = 0;
    int64_t sum = 0;
    sort_by_time(series);
    for (uint32_t i = 0; i < series->count; i++)
        for (uint32_t j = 0; j < STACKS; j++)
            if (series->values[i][j])
                rows[row_count++] = (struct counter_row){
                    .stack = j, .key = j, .snapshot = i, .value = series->values[i][j]};
    snapshot_chains_find(rows, row_count, series->times_s, series->count, links);
    for (uint32_t i = 0; i < series->count; i++)
        for (uint32_t j = 0; j < STACKS; j++) {
            const uint32_t before = links[i].before;
            if (before != SNAPSHOT_CHAINS_NONE)
                sum += series->values[i][j] - series->values[before][j];
            else if (links[i].restarted)
                sum += series->values[i][j];
        }
    mem_free(rows);
    return sum;
}

static uint32_t count_restarts(const struct series *series, const struct snapshot_link *links)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < series->count; i++)
        count += links[i].restarted;
    return count;
}

/* The example of the header. */
static void a_clock_set_back_makes_two_chains(void **state)
{
    (void)state;
    struct series series = {0};
    struct snapshot_link links[SNAPSHOTS_MAX];
    const int64_t times_s[] = {90, 100, 110, 105, 115, 125};
    const uint32_t none = SNAPSHOT_CHAINS_NONE, before[] = {none, 0, none, 1, 2, 4};
    for (int64_t i = 0; i < 6; i++)
        add(&series, times_s[i], 990 + 10 * i);
    assert_int_equal(find(&series, links), 40);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(links[i].before, before[i]);
        assert_false(links[i].restarted);
        if (before[i] != none)
            assert_int_equal(links[before[i]].after, i);
    }
}

/* One interval's increase is unknown: that across the step. */
static void a_clock_set_back_loses_one_increase(void **state)
{
    (void)state;
    static const int64_t steps_s[] = {11, 15, 25, 59, 61, 125, 601};
    struct snapshot_link links[SNAPSHOTS_MAX];
    for (size_t n = 0; n < sizeof(steps_s) / sizeof(*steps_s); n++) {
        struct series series = {0};
        for (int64_t i = 0; i < 200; i++)
            add(&series, i * 10 - (i >= 100 ? steps_s[n] : 0), 100000 + i * 100);
        assert_int_equal(find(&series, links), 198 * 100);
        assert_int_equal(count_restarts(&series, links), 0);
    }
}

/* A host starts with a clock that is ahead, which is set back after a while. When the time of the
 * first snapshots comes again, they are mixed with later ones. */
static void a_clock_that_was_ahead_adds_nothing(void **state)
{
    (void)state;
    struct snapshot_link links[SNAPSHOTS_MAX];
    struct series series = {0};
    for (int64_t i = 0; i < 300; i++)
        add(&series, i * 10 + (i < 50 ? 1503 : 0), 100000 + i * 100);
    assert_int_equal(find(&series, links), 298 * 100);
    assert_int_equal(count_restarts(&series, links), 0);
}

/* The second process starts later, and each misses some snapshots. */
static void two_processes_make_two_chains(void **state)
{
    (void)state;
    struct snapshot_link links[SNAPSHOTS_MAX];
    for (uint64_t round = 1; round <= 100; round++) {
        uint64_t seed = round * UINT64_C(0x9e3779b97f4a7c15);
        struct series series = {0};
        const int64_t level = 1000 + (int64_t)random_below(&seed, 1000000);
        int64_t last[2] = {-1, -1}, wanted = 0;
        int64_t next = 4; /* the earliest round in which one may be missing */
        for (int64_t i = 0; i < 100; i++)
            for (int64_t who = 0; who < 2; who++) {
                const int64_t total = (who ? level * 3 : level) + i * 10;
                if (i >= next && i < 95 && random_below(&seed, 10) == 0) {
                    next = i + 3;
                    continue;
                }
                add(&series, i * 10 + who * 3, total);
                wanted += last[who] < 0 ? 0 : total - last[who];
                last[who] = total;
            }
        assert_int_equal(find(&series, links), wanted);
        assert_int_equal(count_restarts(&series, links), 0);
    }
}

/* Every increase of every run counts, also if each run begins with about the same large number. */
static void crash_loops_restart(void **state)
{
    (void)state;
    struct snapshot_link links[SNAPSHOTS_MAX];
    for (uint64_t round = 1; round <= 1000; round++) {
        uint64_t seed = round * UINT64_C(0x9e3779b97f4a7c15);
        struct series series = {0};
        const uint32_t life = 2 + random_below(&seed, 20);
        const int64_t load = random_below(&seed, 2) ? 100000 : 0;
        const uint32_t noise = 1 + random_below(&seed, 99);
        int64_t wanted = 0, time_s = 0;
        uint32_t restarts = 0;
        while (series.count + life < SNAPSHOTS_MAX) {
            const int64_t phase = load + 1 + random_below(&seed, noise);
            for (uint32_t i = 0; i < life; i++)
                add(&series, time_s += 10, (phase + i * 100) * 6);
            wanted += (phase + (life - 1) * 100) * 6 - (restarts++ ? 0 : phase * 6);
        }
        assert_int_equal(find(&series, links), wanted);
        assert_int_equal(count_restarts(&series, links), restarts - 1);
    }
}

/* Each snapshot is in one chain, whose snapshots never decrease; whatever the values are. */
static void chains_are_consistent(void **state)
{
    (void)state;
    struct snapshot_link links[SNAPSHOTS_MAX];
    for (uint64_t round = 1; round <= 500; round++) {
        uint64_t seed = round * UINT64_C(0x9e3779b97f4a7c15);
        struct series series = {0};
        const uint32_t most = 1 + random_below(&seed, 40);
        for (uint32_t i = 0; i < 60; i++)
            add(&series, i, 100 + (int64_t)random_below(&seed, most));
        find(&series, links);
        assert_int_equal(links[0].before, SNAPSHOT_CHAINS_NONE);
        assert_false(links[0].restarted);
        for (uint32_t i = 0; i < series.count; i++) {
            const uint32_t before = links[i].before;
            if (links[i].after != SNAPSHOT_CHAINS_NONE)
                assert_int_equal(links[links[i].after].before, i);
            if (before == SNAPSHOT_CHAINS_NONE)
                continue;
            assert_false(links[i].restarted);
            assert_int_equal(links[before].after, i);
            assert_in_range(i - before, 1, SNAPSHOT_CHAINS_REACH);
            for (uint32_t j = 0; j < STACKS; j++)
                assert_true(series.values[i][j] >= series.values[before][j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_set_back_makes_two_chains),
        cmocka_unit_test(a_clock_set_back_loses_one_increase),
        cmocka_unit_test(a_clock_that_was_ahead_adds_nothing),
        cmocka_unit_test(two_processes_make_two_chains),
        cmocka_unit_test(crash_loops_restart),
        cmocka_unit_test(chains_are_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

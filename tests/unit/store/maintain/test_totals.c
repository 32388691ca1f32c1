/* The reduction of an hour to its totals, compared with sums and increases that are computed cell
 * by cell from all of its profiles. */
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "store/maintain/totals.h"

#include <string.h>

enum { STACKS = 7, PROFILES = 12, ROWS_MAX = STACKS * PROFILES * 3 };

/* The value of each profile and stack, and the rows that contain it. */
struct hour {
    uint32_t profile_count;
    int64_t cells[PROFILES][STACKS];
    struct block_profile profiles[PROFILES];
    uint32_t stacks[ROWS_MAX], ordinals[ROWS_MAX], label_sets[ROWS_MAX], counts[ROWS_MAX];
    int64_t values[ROWS_MAX], timestamps[1];
    struct block_rows rows;
};

static int64_t random_sign(uint64_t *seed)
{
    return random_below(seed, 3) ? 1 : -1;
}

/* Counters mostly grow and restart now and then; deltas are arbitrary. */
static void make_cells(struct hour *hour, enum store_aggregation rule, uint64_t *seed)
{
    const uint32_t restarts = random_below(seed, 6);
    hour->profile_count = 1 + random_below(seed, PROFILES);
    for (uint32_t i = 0; i < hour->profile_count; i++) {
        const bool is_new = i == 0 || random_below(seed, 10) < restarts;
        for (uint32_t s = 0; s < STACKS; s++) {
            const int64_t more = random_below(seed, 3) ? 0 : (int64_t)random_below(seed, 50);
            if (rule == STORE_COUNTER_DELTA)
                hour->cells[i][s] = (is_new ? 0 : hour->cells[i - 1][s]) + more;
            else
                hour->cells[i][s] = more * random_sign(seed);
        }
        hour->profiles[i] = (struct block_profile){.time_ns = (int64_t)i * 1000 + 1};
    }
}

static void add_row(struct hour *hour, uint32_t stack, uint32_t ordinal, int64_t value)
{
    const uint32_t row = hour->rows.row_count;
    if (value == 0)
        return;
    hour->stacks[row] = stack;
    hour->ordinals[row] = ordinal;
    hour->label_sets[row] = row % 3;
    hour->values[row] = value;
    hour->rows.row_count++;
}

/* A cell is one row or several, like samples with different labels; some of them cancel each
 * other. */
static void make_hour(struct hour *hour, enum store_aggregation rule, uint64_t *seed)
{
    *hour = (struct hour){0};
    make_cells(hour, rule, seed);
    for (uint32_t s = 0; s < STACKS; s++) {
        for (uint32_t i = 0; i < hour->profile_count; i++) {
            const int64_t part =
                random_below(seed, 3) ? 0 : random_sign(seed) * (int64_t)random_below(seed, 9);
            add_row(hour, s, i, part);
            add_row(hour, s, i, hour->cells[i][s] - part);
        }
    }
    hour->rows.profile_count = hour->profile_count;
    hour->rows.profiles = hour->profiles;
    hour->rows.stacks = hour->stacks;
    hour->rows.ordinals = hour->ordinals;
    hour->rows.values = hour->values;
    hour->rows.label_sets = hour->label_sets;
    hour->rows.timestamp_counts = hour->counts;
    hour->rows.timestamps = hour->timestamps;
}

/* Checks that rows are sorted, one for each stack and profile, without zeros and without data of
 * single samples. */
static void check_rows(const struct block_rows *rows)
{
    assert_true(rows->are_totals);
    assert_null(rows->label_sets);
    assert_null(rows->timestamp_counts);
    assert_null(rows->timestamps);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        assert_true(rows->values[i] != 0 && rows->ordinals[i] < rows->profile_count);
        assert_true(
            i == 0 || rows->stacks[i - 1] < rows->stacks[i] ||
            (rows->stacks[i - 1] == rows->stacks[i] && rows->ordinals[i - 1] < rows->ordinals[i]));
    }
}

/* Reducing once more, as each later merge does, changes nothing. */
static void check_again(struct arena *arena, enum store_aggregation rule,
                        const struct block_rows *rows)
{
    struct block_rows again = *rows;
    totals_reduce(arena, rule, &again);
    assert_int_equal(again.row_count, rows->row_count);
    assert_int_equal(again.profile_count, rows->profile_count);
    for (uint32_t i = 0; i < rows->row_count; i++)
        assert_true(again.stacks[i] == rows->stacks[i] && again.ordinals[i] == rows->ordinals[i] &&
                    again.values[i] == rows->values[i]);
}

static void deltas_have_a_row_for_each_stack(void **state)
{
    (void)state;
    uint64_t seed = 20261122;
    for (int round = 0; round < 3000; round++) {
        arena_auto arena = arena_create();
        struct hour hour;
        make_hour(&hour, STORE_SUM, &seed);
        totals_reduce(arena, STORE_SUM, &hour.rows);
        check_rows(&hour.rows);
        assert_int_equal(hour.rows.profile_count, hour.profile_count);
        uint32_t row = 0;
        for (uint32_t s = 0; s < STACKS; s++) {
            int64_t sum = 0;
            for (uint32_t i = 0; i < hour.profile_count; i++)
                sum += hour.cells[i][s];
            if (sum == 0)
                continue;
            assert_true(row < hour.rows.row_count);
            assert_int_equal(hour.rows.stacks[row], s);
            assert_int_equal(hour.rows.ordinals[row], 0);
            assert_int_equal(hour.rows.values[row++], sum);
        }
        assert_int_equal(row, hour.rows.row_count);
        check_again(arena, STORE_SUM, &hour.rows);
    }
}

/* ---- gauges and counters ---- */

/* Adds to increases that of each stack between two snapshots. If any stack has less than before,
 * the counters began again, and all of the second snapshot counts. */
static void add_increases(const int64_t before[STACKS], const int64_t after[STACKS],
                          int64_t increases[STACKS])
{
    bool is_new = false;
    for (uint32_t s = 0; s < STACKS; s++)
        is_new = is_new || after[s] < before[s];
    for (uint32_t s = 0; s < STACKS; s++)
        increases[s] += after[s] - (is_new ? 0 : before[s]);
}

/* The increases from the last snapshot before the hour, through all of the hour, to the first one
 * after it. */
static void increases_of(int64_t (*cells)[STACKS], uint32_t count, const int64_t before[STACKS],
                         const int64_t after[STACKS], int64_t increases[STACKS])
{
    memset(increases, 0, STACKS * sizeof(*increases));
    add_increases(before, cells[0], increases);
    for (uint32_t i = 1; i < count; i++)
        add_increases(cells[i - 1], cells[i], increases);
    add_increases(cells[count - 1], after, increases);
}

static void snapshots_of_gauges_and_counters_are_kept(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 5000; round++) {
        arena_auto arena = arena_create();
        struct hour hour;
        int64_t before[STACKS], after[STACKS], wanted[STACKS], increases[STACKS];
        int64_t left[PROFILES][STACKS] = {0};
        make_hour(&hour, STORE_COUNTER_DELTA, &seed);
        for (uint32_t s = 0; s < STACKS; s++) {
            const int64_t less = random_below(&seed, 4) ? 0 : (int64_t)random_below(&seed, 5);
            before[s] = hour.cells[0][s] > less ? hour.cells[0][s] - less : 0;
            after[s] = hour.cells[hour.profile_count - 1][s] + (int64_t)random_below(&seed, 5);
        }
        increases_of(hour.cells, hour.profile_count, before, after, wanted);
        const enum store_aggregation rule = round % 2 ? STORE_MEAN : STORE_COUNTER_DELTA;
        totals_reduce(arena, rule, &hour.rows);
        check_rows(&hour.rows);
        assert_int_equal(hour.rows.profile_count, hour.profile_count);
        for (uint32_t row = 0; row < hour.rows.row_count; row++)
            left[hour.rows.ordinals[row]][hour.rows.stacks[row]] = hour.rows.values[row];
        for (uint32_t i = 0; i < hour.profile_count;
             i++) /* each is an unchanged snapshot of the input */
            assert_memory_equal(left[i], hour.cells[hour.profiles[i].time_ns / 1000],
                                sizeof(left[i]));
        increases_of(left, hour.profile_count, before, after, increases);
        assert_memory_equal(increases, wanted, sizeof(wanted));
        check_again(arena, rule, &hour.rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deltas_have_a_row_for_each_stack),
        cmocka_unit_test(snapshots_of_gauges_and_counters_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

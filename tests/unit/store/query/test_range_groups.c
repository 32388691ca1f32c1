/* Sums per step of the largest groups and of all others, compared with sums of every group. */
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "lib/base/mem.h"
#include "store/query/range_groups.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPS = 60, STEPS = 9, VALUES = 900, CELL_BYTES = 64 };

struct value {
    uint32_t group, step;
    int64_t sum;
};

struct sums {
    int64_t cells[GROUPS][STEPS], totals[GROUPS], all[STEPS];
    bool is_there[GROUPS][STEPS], is_group[GROUPS];
};

static int by_number(void *context, uint32_t one, uint32_t other)
{
    (void)context;
    return one < other ? -1 : one > other;
}

static void make_values(struct value *values, uint64_t *seed)
{
    for (uint32_t i = 0; i < VALUES; i++)
        values[i] = (struct value){
            .group = random_below(seed, GROUPS) * random_below(seed, GROUPS) / GROUPS,
            .step = random_below(seed, STEPS),
            .sum = (int64_t)random_below(seed, 2000) - (random_below(seed, 4) ? 0 : 1000)};
}

static void add_all(struct range_groups *groups, const struct value *values, bool is_second)
{
    for (uint32_t i = 0; i < VALUES; i++) {
        if (!is_second || range_groups_wants(groups, values[i].group))
            range_groups_add(groups, values[i].group, values[i].step, values[i].sum);
    }
}

static struct sums *sum_all(const struct value *values)
{
    struct sums *sums = mem_new(struct sums, 1);
    for (uint32_t i = 0; i < VALUES; i++) {
        const struct value *value = &values[i];
        sums->cells[value->group][value->step] += value->sum;
        sums->totals[value->group] += value->sum;
        sums->all[value->step] += value->sum;
        sums->is_there[value->group][value->step] = sums->is_group[value->group] = true;
    }
    return sums;
}

static bool is_larger(const struct sums *sums, uint32_t one, uint32_t other)
{
    const int64_t x = llabs(sums->totals[one]);
    const int64_t y = llabs(sums->totals[other]);
    return x != y ? x > y : one < other;
}

/* As many groups as requested, and no other group is larger than one of them. */
static void check_choice(const struct range_groups *groups, const struct sums *sums, uint32_t max)
{
    const uint32_t *chosen;
    const uint32_t count = range_groups_chosen(groups, &chosen);
    uint32_t there = 0;
    for (uint32_t g = 0; g < GROUPS; g++) {
        bool is_chosen = false;
        for (uint32_t i = 0; i < count; i++)
            is_chosen |= chosen[i] == g;
        there += sums->is_group[g];
        for (uint32_t i = 0; i < count && sums->is_group[g] && !is_chosen; i++)
            assert_true(is_larger(sums, chosen[i], g));
    }
    assert_int_equal(range_groups_count(groups), there);
    assert_int_equal(count, there < max ? there : max);
    for (uint32_t i = 1; i < count; i++)
        assert_true(chosen[i - 1] < chosen[i]);
}

static void check_steps(const struct range_groups *groups, const struct sums *sums)
{
    const uint32_t *chosen;
    const uint32_t count = range_groups_chosen(groups, &chosen);
    for (uint32_t s = 0; s < STEPS; s++) {
        __int128 sum = 0, value = 0;
        for (uint32_t i = 0; i < count; i++) {
            const bool is_there = range_groups_value(groups, chosen[i], s, &value);
            assert_int_equal(is_there, sums->is_there[chosen[i]][s]);
            if (is_there)
                assert_int_equal(value, sums->cells[chosen[i]][s]);
            sum += is_there ? value : 0;
        }
        if (range_groups_rest(groups, s, &value))
            sum += value;
        assert_int_equal(sum, sums->all[s]);
    }
}

static void keeps_the_largest_groups_and_the_sum_of_the_others(void **state)
{
    (void)state;
    uint64_t seed = 20261128;
    uint32_t second_count = 0;
    for (uint32_t run = 0; run < 300; run++) {
        struct value values[VALUES];
        make_values(values, &seed);
        const uint32_t max = 1 + random_below(&seed, GROUPS + 5);
        const size_t budget = random_below(&seed, GROUPS) * STEPS * CELL_BYTES;
        struct range_groups *groups = range_groups_create(STEPS, max, budget);
        struct sums *sums = sum_all(values);
        add_all(groups, values, false);
        if (range_groups_choose(groups, by_number, NULL)) {
            add_all(groups, values, true);
            second_count++;
        }
        check_choice(groups, sums, max);
        check_steps(groups, sums);
        range_groups_destroy(groups);
        mem_free(sums);
    }
    assert_in_range(second_count, 20, 280);
}

/* The group that grows largest comes last, when the budget is spent. */
static void needs_little_memory_for_very_many_groups(void **state)
{
    (void)state;
    enum { MANY = 100000, LONG = 1000, BUDGET = 1 << 20 };
    struct range_groups *groups = range_groups_create(LONG, 10, BUDGET);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < MANY; i++)
            range_groups_add(groups, i, i % LONG, i);
        /* The array of groups may have space for twice as many; a group has less than 80 bytes. */
        const size_t per_group = MANY * (size_t)2 * 80;
        assert_in_range(range_groups_memory(groups), MANY, BUDGET + per_group);
        if (pass == 0)
            assert_true(range_groups_choose(groups, by_number, NULL));
    }
    const uint32_t *chosen;
    __int128 value;
    assert_int_equal(range_groups_chosen(groups, &chosen), 10);
    assert_int_equal(chosen[0], MANY - 10);
    assert_true(range_groups_value(groups, MANY - 1, LONG - 1, &value));
    assert_int_equal(value, MANY - 1);
    assert_false(range_groups_value(groups, MANY - 1, 0, &value));
    assert_true(range_groups_rest(groups, 0, &value));
    assert_int_equal(value, (int64_t)LONG * (MANY / LONG) * (MANY / LONG - 1) / 2);
    range_groups_destroy(groups);
}

static void cover_every_second(struct coverage *covered, uint32_t count, int64_t shift)
{
    for (uint32_t i = 0; i < count; i++)
        coverage_add(covered, 1000 * (int64_t)i + shift, 1000 * (int64_t)i + shift + 10);
    coverage_close(covered, 0);
}

static uint64_t covered_ns(const struct range_groups *groups, uint32_t group)
{
    uint32_t cursor = 0;
    return coverage_within(range_groups_covered(groups, group), &cursor, 0, INT64_MAX);
}

/* 3,000 groups are in series 0, in series 1, or in both. */
static void groups_that_the_same_series_cover_share_one_coverage(void **state)
{
    (void)state;
    enum { MANY = 3000, SPANS = 2000, ALL = MANY * SPANS * (int)sizeof(struct coverage_span) };
    struct range_groups *groups = range_groups_create(1, MANY, MANY * CELL_BYTES);
    struct coverage series[2] = {{0}, {0}};
    for (uint32_t i = 0; i < 2; i++) {
        cover_every_second(&series[i], SPANS, 100 * (int64_t)i);
        for (uint32_t g = 0; g < MANY; g++) {
            if (g % 3 == i)
                continue;
            range_groups_add(groups, g, 0, 1);
            range_groups_cover(groups, g, i, &series[i]);
            range_groups_cover(groups, g, i, &series[i]);
        }
        assert_in_range(range_groups_memory(groups), 0, ALL / 20);
    }
    assert_false(range_groups_choose(groups, by_number, NULL));
    for (uint32_t g = 0; g < MANY; g++)
        assert_int_equal(covered_ns(groups, g), (g % 3 == 2 ? 2 : 1) * SPANS * 10);
    coverage_fini(&series[0]);
    coverage_fini(&series[1]);
    range_groups_destroy(groups);
}

/* Groups 0 to 4 are each one series of 10, 20, … ns; the last two are the largest. */
static void the_rest_covers_the_time_of_groups_that_were_not_chosen(void **state)
{
    (void)state;
    enum { COUNT = 5, CHOSEN = 2 };
    for (size_t with_cells = CHOSEN; with_cells <= COUNT; with_cells++) {
        struct range_groups *groups = range_groups_create(1, CHOSEN, with_cells * CELL_BYTES);
        uint32_t cursor = 0;
        for (uint32_t g = COUNT; g-- > 0;) { /* the largest first, so that they have cells */
            struct coverage covered = {0};
            coverage_add(&covered, 100 * (int64_t)g, 100 * (int64_t)g + 10 * ((int64_t)g + 1));
            coverage_close(&covered, 0);
            range_groups_add(groups, g, 0, (int64_t)g + 1);
            range_groups_cover(groups, g, g, &covered);
            coverage_fini(&covered);
        }
        assert_false(range_groups_choose(groups, by_number, NULL));
        assert_int_equal(coverage_within(range_groups_rest_covered(groups), &cursor, 0, INT64_MAX),
                         10 + 20 + 30);
        range_groups_destroy(groups);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_largest_groups_and_the_sum_of_the_others),
        cmocka_unit_test(needs_little_memory_for_very_many_groups),
        cmocka_unit_test(groups_that_the_same_series_cover_share_one_coverage),
        cmocka_unit_test(the_rest_covers_the_time_of_groups_that_were_not_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "store/query/range_result.h"

#include "lib/base/arena.h"
#include "store/values/apportion.h"

#include <stdlib.h>

struct span range_result_find_label(const struct row_labels *labels, uint32_t group,
                                    struct span name)
{
    uint32_t count;
    const struct label_words *words = row_labels_get(labels, group, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (span_equal(words[i].key, name))
            return words[i].text;
    }
    return (struct span){0};
}

/* Average over the covered time: sums of deltas are in 1 / SPREAD_UNIT, those of gauges are value
 * times ns. */
static double average_of(const struct range_sums *sums, __int128 sum, uint64_t covered_ns)
{
    const double unit = sums->aggregation == STORE_MEAN ? 1 : SPREAD_UNIT;
    return covered_ns ? (double)sum / unit / (double)covered_ns : 0;
}

static void add_point(const struct range_sums *sums, struct store_range_series *series,
                      struct store_point *points, uint32_t step, __int128 sum, uint64_t covered_ns)
{
    int64_t begin_ns, end_ns;
    spread_find_step(sums->steps, step, &begin_ns, &end_ns);
    const uint64_t length_ns = (uint64_t)end_ns - (uint64_t)begin_ns;
    points[series->point_count++] = (struct store_point){
        .step = step,
        .average = average_of(sums, sum, covered_ns ? covered_ns : length_ns),
        .covered_ns = covered_ns,
    };
    series->covered_ns += covered_ns;
}

/* Used instead of a group: the sum of the groups that were not chosen. */
#define OTHER_GROUPS UINT32_MAX

/* False: the group has nothing in this step. OTHER_GROUPS have a sum, which may be 0, in each step
 * in which any group has data. */
static bool find_value(const struct range_sums *sums, uint32_t group, uint32_t step,
                       __int128 *ret_sum)
{
    return group == OTHER_GROUPS ? range_groups_rest(sums->groups, step, ret_sum)
                                 : range_groups_value(sums->groups, group, step, ret_sum);
}

static uint64_t covered_in_step(const struct range_sums *sums, const struct coverage *covered,
                                uint32_t *cursor, uint32_t step)
{
    int64_t begin_ns, end_ns;
    spread_find_step(sums->steps, step, &begin_ns, &end_ns);
    return coverage_within(covered, cursor, begin_ns, end_ns);
}

/* Makes the points of a group, or with OTHER_GROUPS those of the groups that were not chosen.
 * apportion_values then sets their whole numbers. */
static void make_points(struct arena *arena, const struct range_sums *sums, uint32_t group,
                        struct store_range_series *series)
{
    const bool are_others = group == OTHER_GROUPS;
    const struct coverage *covered = are_others ? range_groups_rest_covered(sums->groups)
                                                : range_groups_covered(sums->groups, group);
    struct store_point *points = arena_new_raw(arena, struct store_point, sums->step_count);
    __int128 total = 0;
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < sums->step_count; i++) {
        __int128 sum = 0;
        const uint64_t covered_ns = covered_in_step(sums, covered, &cursor, i);
        const bool has_value = find_value(sums, group, i, &sum) && !(are_others && sum == 0);
        if (!has_value && !covered_ns)
            continue;
        total += sum;
        add_point(sums, series, points, i, sum, covered_ns);
    }
    series->points = points;
    series->average = average_of(sums, total, series->covered_ns);
}

/* Sets the whole numbers of all points, which are in order of steps; other may be NULL. */
static void apportion_values(struct arena *arena, const struct range_sums *sums,
                             const uint32_t *chosen, uint32_t count,
                             struct store_range_series *series, struct store_range_series *other)
{
    const uint32_t all_count = count + (other ? 1 : 0);
    struct apportion apportion = apportion_create(arena, all_count);
    uint32_t *cursors = arena_new(arena, uint32_t, all_count);
    for (uint32_t step = 0; step < sums->step_count; step++) {
        for (uint32_t i = 0; i < all_count; i++) {
            apportion.groups[i].sum = 0;
            (void)find_value(sums, i < count ? chosen[i] : OTHER_GROUPS, step,
                             &apportion.groups[i].sum);
        }
        apportion_step(&apportion);
        for (uint32_t i = 0; i < all_count; i++) {
            struct store_range_series *one = i < count ? &series[i] : other;
            if (cursors[i] == one->point_count || one->points[cursors[i]].step != step)
                continue;
            one->points[cursors[i]++].value = apportion.groups[i].value;
            one->total += apportion.groups[i].value;
        }
    }
}

static void make_labels(struct arena *arena, const struct range_sums *sums, uint32_t group,
                        struct store_range_series *ret_series)
{
    const struct store_range_query *query = sums->query;
    struct store_label *labels = arena_new(arena, struct store_label, query->group_by_count);
    for (size_t i = 0; i < query->group_by_count; i++)
        labels[i] = (struct store_label){
            .name = query->group_by[i],
            .value = range_result_find_label(sums->labels, group, query->group_by[i])};
    ret_series->labels = labels;
}

static int compare_intervals(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median: a few series with long intervals do not make the step long for all. */
static void describe_intervals(const struct range_sums *sums, struct store_range *result)
{
    const uint32_t count = sums->interval_count;
    if (!count)
        return;
    qsort(sums->intervals_ns, count, sizeof(*sums->intervals_ns), compare_intervals);
    result->interval_ns = sums->intervals_ns[(count - 1) / 2];
    result->longest_interval_ns = sums->intervals_ns[count - 1];
    for (uint32_t i = 0; i < count; i++)
        result->longer_count += sums->intervals_ns[i] > sums->steps->step_ns;
}

/* Whether the window has data; neighbours alone are none. */
static bool has_data(const struct scan *scan, const struct range_sums *sums)
{
    const struct store_statistics *statistics = scan_statistics(scan);
    return scan_type(scan) &&
           (statistics->profile_count || statistics->cut_count || range_groups_count(sums->groups));
}

void range_result_make(struct scan *scan, const struct range_sums *sums,
                       struct store_range *ret_result)
{
    const uint32_t *chosen;
    const uint32_t count = range_groups_chosen(sums->groups, &chosen);
    const uint32_t other_count = range_groups_count(sums->groups) - count;
    struct store_type *type = NULL;
    if (has_data(scan, sums)) {
        type = arena_new(scan_arena(scan), struct store_type, 1);
        *type = *scan_type(scan);
    }
    struct store_range_series *series =
        arena_new(scan_arena(scan), struct store_range_series, count);
    for (uint32_t i = 0; i < count; i++) {
        make_labels(scan_arena(scan), sums, chosen[i], &series[i]);
        make_points(scan_arena(scan), sums, chosen[i], &series[i]);
    }
    struct store_range_series *other = NULL;
    if (other_count) {
        other = arena_new(scan_arena(scan), struct store_range_series, 1);
        make_points(scan_arena(scan), sums, OTHER_GROUPS, other);
    }
    if (sums->aggregation != STORE_MEAN)
        apportion_values(scan_arena(scan), sums, chosen, count, series, other);
    *ret_result = (struct store_range){.type = type,
                                       .series = series,
                                       .series_count = count,
                                       .other = other,
                                       .other_count = other_count,
                                       .unknown_count = sums->unknown_count,
                                       .crowded_count = sums->crowded_count,
                                       .lacking_part = sums->lacking_part,
                                       .single_count = sums->single_count,
                                       .statistics = *scan_statistics(scan)};
    describe_intervals(sums, ret_result);
}

#include "store/query/range_internal.h"

#include "lib/base/vec.h"

static void cover_increases(void *context, int64_t since_ns, int64_t time_ns)
{
    struct range *range = context;
    spread_cover(&range->spread, since_ns, time_ns - since_ns);
}

/* The sum of the increases of the groups that were added before, for one snapshot. */
static int64_t *find_earlier_increase(struct range *range, int64_t time_ns)
{
    const uint32_t count = range->earlier_increases.count;
    const uint32_t number = map_u64_add(&range->earlier_increases, (uint64_t)time_ns, count);
    vec_reserve(range->values, range->value_capacity, number + 1);
    if (number == count)
        range->values[number] = 0;
    return &range->values[number];
}

static void add_increase(void *context, const struct counter_delta *delta)
{
    struct range *range = context;
    const int64_t value = delta->key % 2 ? delta->value : 0;
    int64_t *before = find_earlier_increase(range, delta->time_ns);
    spread_add_part(&range->spread, delta->key / 2, delta->since_ns,
                    delta->time_ns - delta->since_ns, *before, value);
    *before += value;
}

/* Adds the series' sums and covered time to its groups. A group gets all the time that the series
 * covers, whether its labels of samples occur in it or not. */
static enum err_code add_to_groups(struct range *range, uint32_t series)
{
    enum { CHECK_BYTES = 4 << 20, CHECK_SUMS = 1 << 16 };
    uint32_t *groups = &range->groups_of_series[series];
    size_t checked_bytes = range_groups_memory(range->groups);
    for (uint32_t i = 0; i < range->spread.sum_count; i++) {
        if (i % CHECK_SUMS == 0 ||
            range_groups_memory(range->groups) > checked_bytes + CHECK_BYTES) {
            const enum err_code code = range_check_limits(range);
            if (code)
                return code;
            checked_bytes = range_groups_memory(range->groups);
        }
        const struct spread_sum *sum = &range->spread.sums[i];
        range_groups_add(range->groups, sum->group, sum->step, sum->sum);
        range_groups_cover(range->groups, sum->group, series, &range->spread.covered);
        *groups =
            *groups == RANGE_NO_GROUP || *groups == sum->group ? sum->group : RANGE_SEVERAL_GROUPS;
    }
    return ERR_NONE;
}

static void begin_series(struct range *range)
{
    spread_begin_series(&range->spread);
    map_u64_fini(&range->earlier_increases);
    range->earlier_increases = (struct map_u64){0};
    range->has_left_out = range->has_lost_rows = false;
    range->interleaving = (struct interleaving){0};
    neighbours_begin_series(&range->neighbours);
}

/* True when the granule has no rows, or none that the query wants. */
static bool is_left_out(struct range *range, const struct scan_task *task)
{
    if (neighbours_is_unread(task) || range_is_cut(range, task))
        return false;
    if (range_is_idle(range, task))
        return true;
    row_labels_begin(range->labels, task->block, task->granule);
    return (task->has_totals_only || !row_labels_wants_rows(range->labels, task->granule)) &&
           !row_labels_stays(row_labels_group(range->labels, 0));
}

/* If the query selects some rows of the series, the granules without such rows count as time in
 * which the value was 0. A series without any row in the window is in the group of its own labels.
 */
static enum err_code read_left_out(struct range *range, struct scan_task *tasks, uint32_t begin,
                                   uint32_t end)
{
    enum err_code code = ERR_NONE;
    const bool is_there = range->spread.sum_count || range->spread.unknown_sums;
    for (uint32_t i = begin; i < end && !code && range->has_left_out; i++) {
        struct scan_task *task = &tasks[i];
        if (is_left_out(range, task) && (is_there || range_is_idle(range, task)))
            code = range_read_times(range, task);
    }
    return code;
}

/* The series has no rows in the window: its first covered span adds a 0 to its own group. */
static void add_idle_series(struct range *range, const struct scan_task *task)
{
    const struct coverage *covered = &range->spread.covered;
    if (range->aggregation == STORE_COUNTER_DELTA || range->spread.sum_count ||
        range->has_lost_rows || !covered->count)
        return;
    row_labels_begin(range->labels, task->block, task->granule);
    const uint32_t group = row_labels_group(range->labels, 0);
    const struct coverage_span *first = &covered->spans[0];
    if (row_labels_stays(group))
        spread_add(&range->spread, group, first->begin_ns, first->end_ns - first->begin_ns, 0);
}

/* Records the interval of a series of deltas: 0 if all have a duration, because then nothing is
 * unknown within a step. A single profile without a duration has no known interval. */
static void note_series_interval(struct range *range)
{
    const struct spread *spread = &range->spread;
    const bool is_known = spread->interval_ns || !spread->time_count;
    if (range->aggregation == STORE_SUM && !range->is_second_pass && is_known && spread->sum_count)
        range->intervals_ns[range->interval_count++] = spread->interval_ns;
}

/* Records which part of the time the deltas of a series cover. */
static void note_partial_coverage(struct range *range)
{
    const struct spread *spread = &range->spread;
    double sum = 0;
    if (range->aggregation != STORE_SUM || range->is_second_pass || !spread->sum_count)
        return;
    for (uint32_t i = 0; i < spread->sum_count; i++)
        sum += (double)spread->sums[i].sum;
    partial_coverage_add(&range->partial, &spread->covered, sum, spread->shortest_ns);
}

static enum err_code read_neighbours(struct range *range, struct scan_task *tasks, uint32_t begin,
                                     uint32_t end, bool is_before)
{
    struct scan_task *task;
    enum err_code code = neighbours_next(&range->neighbours, tasks, begin, end, is_before, &task);
    while (!code && task) {
        if (task->first < task->end)
            code = range_read_task(range, task);
        if (!code)
            code = range_check_limits(range);
        if (!code)
            code = neighbours_next(&range->neighbours, tasks, begin, end, is_before, &task);
    }
    return code;
}

static bool goes_on(void *context)
{
    struct range *range = context;
    range->stop_code = range_check_limits(range);
    return !range->stop_code;
}

static void end_series(struct range *range, const struct scan_task *task)
{
    spread_end_series(&range->spread);
    if (range->aggregation == STORE_MEAN && !range->is_second_pass &&
        interleaving_is_found(&range->interleaving, range->spread.times_ns,
                              range->spread.time_count))
        scan_count_interleaved(range->scan);
    add_idle_series(range, task);
    if (range->aggregation == STORE_SUM)
        neighbours_end_series(&range->neighbours, range->spread.times_ns, range->spread.time_count);
    counter_increase_fini(&range->increase);
    note_series_interval(range);
    note_partial_coverage(range);
}

static enum err_code read_tasks(struct range *range, struct scan_task *tasks, uint32_t begin,
                                uint32_t end)
{
    enum err_code code = ERR_NONE;
    for (uint32_t i = begin; i < end && !code; i++) {
        if (neighbours_is_unread(&tasks[i]))
            continue;
        if (range->query->filter)
            scan_read_ahead(range->scan, i);
        code = range_read_task(range, &tasks[i]);
        if (!code)
            code = range_check_limits(range);
    }
    if (code)
        return code;
    code = read_neighbours(range, tasks, begin, end, true);
    if (code)
        return code;
    return read_neighbours(range, tasks, begin, end, false);
}

enum err_code range_read_series(struct range *range, struct scan_task *tasks, uint32_t begin,
                                uint32_t end)
{
    begin_series(range);
    range->spread.goes_on = goes_on;
    range->spread.goes_on_context = range;
    enum err_code code = read_tasks(range, tasks, begin, end);
    if (!code && range->aggregation == STORE_COUNTER_DELTA) {
        range->increase.magnitude = range->increase_magnitude;
        range->increase.start_ns = range->steps.start_ns;
        range->increase.end_ns = range->steps.end_ns;
        counter_increase_compute(&range->increase, cover_increases, add_increase, range);
        range->increase_magnitude = range->increase.magnitude;
        if (range->increase.overflows)
            code = scan_refuse_increases(range->scan);
        if (range->increase.restarts_often && !range->is_second_pass)
            scan_count_restarting(range->scan);
    } else if (!code)
        code = read_left_out(range, tasks, begin, end);
    end_series(range, &tasks[begin]);
    code = code ? code : range->stop_code;
    return code ? code : add_to_groups(range, tasks[begin].series);
}

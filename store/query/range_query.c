#include "store/query/range_internal.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/profile/report/label_filter.h"
#include "store/query/range_result.h"

#include <stdlib.h>
#include <string.h>

/* Memory for the steps of groups that may not be among the largest: 2,000 groups of 250 steps. A
 * query with more groups reads the largest ones a second time. */
enum { CELL_BUDGET_BYTES = 32 << 20 };

/* Whether the query has to run again with neighbours: for gauges and counters, and for deltas
 * without a duration, which are known only after the deltas are read, or from the granules before
 * the window. */
static bool lacks_neighbours(const struct range *range)
{
    return !scan_query(range->scan)->ahead_ns && scan_type(range->scan) &&
           (range->aggregation != STORE_SUM || range->spread.unknown_count ||
            scan_has_open_ends_before(range->scan));
}

static bool wants_series(const struct range *range, uint32_t series)
{
    const uint32_t group = range->groups_of_series[series];
    return !range->is_second_pass || group == RANGE_SEVERAL_GROUPS ||
           range_groups_wants(range->groups, group);
}

static enum err_code read_pass(struct range *range)
{
    enum err_code code = ERR_NONE;
    uint32_t count;
    struct scan_task *tasks = scan_tasks(range->scan, &count);
    range->increase_magnitude = 0;
    for (uint32_t i = 0, end; i < count && !code && !lacks_neighbours(range); i = end) {
        end = scan_next_series(range->scan, i);
        if (neighbours_can_matter(&range->neighbours, tasks, i, end)) {
            if (wants_series(range, tasks[i].series))
                code = range_read_series(range, tasks, i, end);
        } else if (!range->is_second_pass) {
            scan_discount_series(range->scan);
        }
    }
    return code ? code : range_check_limits(range);
}

static int compare_groups(void *context, uint32_t one, uint32_t other)
{
    const struct range *range = context;
    int order = 0;
    for (size_t i = 0; !order && i < range->query->group_by_count; i++) {
        const struct span name = range->query->group_by[i];
        order = span_compare(range_result_find_label(range->labels, one, name),
                             range_result_find_label(range->labels, other, name));
    }
    return order;
}

/* Makes the second pass (range_groups_choose), which does not count in the statistics or against
 * the limit of bytes. */
static enum err_code read_again(struct range *range, uint64_t opening_bytes)
{
    const struct scan_reads first = scan_get_reads(range->scan);
    struct scan_reads second = first;
    second.bytes_read = opening_bytes;
    range->is_second_pass = true;
    scan_set_reads(range->scan, second);
    const enum err_code code = read_pass(range);
    scan_set_reads(range->scan, first);
    return code;
}

static enum err_code read_all(struct range *range)
{
    const uint64_t opening_bytes = scan_statistics(range->scan)->bytes_read;
    scan_sort_by_series(range->scan);
    enum err_code code = read_pass(range);
    range->unknown_count = range->aggregation == STORE_SUM ? range->spread.unknown_count : 0;
    range->crowded_count += range->spread.crowded_count;
    if (code || lacks_neighbours(range) ||
        !range_groups_choose(range->groups, compare_groups, range))
        return code;
    return read_again(range, opening_bytes);
}

/* Checks the memory of the result, with that of the text that the caller makes of the points, which
 * is about as much as the points take. */
static enum err_code check_text(struct range *range)
{
    const struct store_range *result = &range->result;
    uint64_t points = result->other ? result->other->point_count : 0;
    for (uint32_t i = 0; i < result->series_count; i++)
        points += result->series[i].point_count;
    return range_check_more(range, points * sizeof(struct store_point), scan_err(range->scan));
}

static enum err_code make_result(struct range *range)
{
    const bool has_sums = range->partial.series_count > range_groups_count(range->groups);
    const struct range_sums sums = {
        .query = range->query,
        .aggregation = range->aggregation,
        .steps = &range->steps,
        .step_count = range->step_count,
        .groups = range->groups,
        .labels = range->labels,
        .intervals_ns = range->intervals_ns,
        .interval_count = range->interval_count,
        .unknown_count = range->unknown_count,
        .crowded_count = range->crowded_count,
        .lacking_part = has_sums ? partial_coverage_lack(&range->partial) : 0,
        .single_count = has_sums ? partial_coverage_singles(&range->partial) : 0,
    };
    range_result_make(range->scan, &sums, &range->result);
    return check_text(range);
}

static void range_fini(struct range *range)
{
    for (uint32_t i = 0; i < range->kept_count; i++)
        flight_cache_unref(range->kept_entries[i]);
    range->kept_count = 0;
    row_labels_destroy(range->labels);
    range->labels = NULL;
    range_groups_destroy(range->groups);
    range->groups = NULL;
    map_u64_fini(&range->row_numbers);
    range->row_numbers = (struct map_u64){0};
    range->row_sum_count = 0;
    spread_fini(&range->spread);
    map_u64_fini(&range->earlier_increases);
    range->earlier_increases = (struct map_u64){0};
    counter_increase_fini(&range->increase);
    partial_coverage_fini(&range->partial);
}

static enum err_code check_type(const struct range *range, const struct store_type *type)
{
    struct err *err = scan_err(range->scan);
    if (range->query->is_by_timestamps && range->aggregation != STORE_SUM)
        return err_set(
            err, ERR_INVALID,
            "by_timestamps: %s is not a delta and has no timestamps: leave out by_timestamps",
            type->name);
    if (range->query->is_rate && range->aggregation == STORE_MEAN)
        return err_set(err, ERR_INVALID, "rate: %s is a gauge, which has no rate: set rate=false",
                       type->name);
    return ERR_NONE;
}

static void range_init(struct range *range)
{
    const struct scan *scan = range->scan;
    struct arena *arena = scan_arena(scan);
    const uint32_t block_count = scan_block_count(scan);
    spread_init(&range->spread, &range->steps);
    range->spread.are_gauges = range->aggregation == STORE_MEAN;
    range->checked_at = 0;
    neighbours_init(&range->neighbours, range->scan);
    range->intervals_ns = arena_new_raw(arena, int64_t, range->series_count);
    range->interval_count = 0;
    range->crowded_count = 0;
    range->hour = (struct spread_hour){0};
    range->kept_stacks = arena_new(arena, const bool *, block_count);
    range->kept_entries = arena_new(arena, struct flight_entry *, block_count);
    range->kept_count = block_count;
    range->kept_bytes = 0;
    range->groups =
        range_groups_create(range->step_count, range->query->max_series, CELL_BUDGET_BYTES);
    range->groups_of_series = arena_new_raw(arena, uint32_t, range->series_count);
    memset(range->groups_of_series, 0xff, range->series_count * sizeof(*range->groups_of_series));
    range->is_second_pass = false;
    range->labels =
        row_labels_create(arena, range->query->query.label_filter, scan_row_selectors(scan),
                          range->query->group_by, range->query->group_by_count, ROW_LABELS_TEXTS);
}

/*
 * Computes values over time from the tasks of a scan.
 *
 * Each series is read by itself. Its values go into `spread`, which computes sums per group and
 * step and the covered time; both are then added to `groups`. A task is read in the cheapest
 * form that is exact: as one value (is_one_value), as profiles with their sums, or as rows when a
 * filter, labels of samples, timestamps or a counter need them. If the largest groups turn out to
 * lack cells, their series are read a second time (read_again).
 *
 * The function may run several times: for a longer reach, or when the scan starts again. After an
 * error it has freed everything.
 */
static enum err_code try_to_compute(struct range *range, struct scan *scan)
{
    enum err_code code = scan_check_types(scan);
    if (code)
        return code;
    code = scan_check_magnitude(scan);
    if (code)
        return code;
    scan_count_unlabelled(scan, range->query->group_by, range->query->group_by_count);
    range->scan = scan;
    const struct store_type *type = scan_type(scan);
    range->aggregation = scan_aggregation(scan);
    range->is_of_deltas = type && range->aggregation == STORE_SUM;
    scan_series(scan, &range->series_count);
    code = check_type(range, type);
    if (code)
        return code;
    range_init(range);
    code = read_all(range);
    if (code)
        return code;
    range->lacks_neighbours = lacks_neighbours(range);
    if (range->lacks_neighbours)
        return ERR_NONE;
    code = row_labels_check(range->labels, scan_err(scan));
    if (code)
        return code;
    scan_note_absent_filter_label(scan, row_labels_describe_absent_key(range->labels));
    return make_result(range);
}

static enum err_code compute_range(struct scan *scan, void *context)
{
    struct range *range = context;
    const enum err_code code = try_to_compute(range, scan);
    if (code)
        range_fini(range);
    return code;
}

static int64_t max_ns(int64_t one_ns, int64_t other_ns)
{
    return one_ns > other_ns ? one_ns : other_ns;
}

/* Extends the query's reach if it was too short; returns whether the query has to run again.
 * Durations of profiles before the window, and intervals, are known only after some profiles have
 * been read. A window between two snapshots may have no snapshot within an hour, so without any
 * match the longest reach is tried. */
static bool extend_reach(const struct range *range, struct store_query *query)
{
    int64_t wanted_ns = range->neighbours.wanted_reach_ns;
    if (range->lacks_neighbours || !range->result.type)
        wanted_ns =
            max_ns(wanted_ns, range->is_of_deltas ? NEIGHBOURS_REACH_NS : NEIGHBOURS_REACH_MAX_NS);
    bool is_longer = wanted_ns && neighbours_extend(query, wanted_ns);
    if (range->aggregation == STORE_SUM && range->spread.longest_ns > query->reach_ns &&
        query->reach_ns < NEIGHBOURS_REACH_MAX_NS) {
        query->reach_ns = range->spread.longest_ns < NEIGHBOURS_REACH_MAX_NS
                              ? range->spread.longest_ns
                              : NEIGHBOURS_REACH_MAX_NS;
        is_longer = true;
    }
    return is_longer;
}

static enum err_code scan_until_reached(const struct scan_source *source, struct arena *arena,
                                        const struct store_query *query, struct range *range,
                                        struct err *err)
{
    struct store_query reaching = *query;
    enum err_code code;
    /*
     * Deltas that begin before the window count with the part inside it. Short ones of one series
     * do not show that another sends none of ten minutes, so the first scan looks back an hour;
     * blocks store how far theirs reach, so granules that do not reach the window cost nothing.
     * When durations above an hour are found, the query runs again with a longer reach.
     */
    reaching.reach_ns = NEIGHBOURS_REACH_NS;
    reaching.ahead_ns = 0;
    bool is_again;
    do {
        struct arena *run = arena_create();
        range->result = (struct store_range){0};
        code = scan_run(source, &reaching, SCAN_TASKS, run, compute_range, range, err);
        is_again = !code && extend_reach(range, &reaching);
        range_fini(range);
        if (is_again || code)
            arena_destroy(run);
        else
            arena_adopt(arena, run);
    } while (is_again);
    return code;
}

enum err_code range_query_run(const struct scan_source *source, struct arena *arena,
                              const struct store_range_query *query, struct store_range *ret_range,
                              struct err *err)
{
    const struct spread_steps steps = {.start_ns = query->query.start_ns,
                                       .end_ns = query->query.end_ns,
                                       .lead_ns = query->lead_ns,
                                       .step_ns = query->step_ns};
    const uint64_t step_count = spread_count_steps(&steps);
    if (step_count > STORE_RANGE_STEPS_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "step: the window has more than %d of them; make steps longer",
                       STORE_RANGE_STEPS_MAX);
    struct range range = {
        .query = query,
        .steps = steps,
        .step_count = (uint32_t)step_count,
        .filters = source->filters,
        .stack_query = {.filter = query->filter,
                        .resolver = source->resolver,
                        .tenant_id = query->query.tenant_id,
                        .wait_limit = &query->query.wait_limit},
    };
    if (query->filter)
        range.stack_query.rules = stack_filter_key(arena, query->filter);
    range.names_memory = (struct names_memory){.context = &range, .check = range_check_more};
    range.stack_query.memory = &range.names_memory;
    enum err_code code = scan_until_reached(source, arena, &query->query, &range, err);
    mem_free(range.values);
    mem_free(range.row_sums);
    mem_free(range.keys);
    if (code)
        return code;
    if (!range.result.type && !range.result.statistics.broken_count)
        code = scan_explain_nothing(source, &query->query, arena, err);
    if (code)
        return code;
    *ret_range = range.result;
    return ERR_NONE;
}

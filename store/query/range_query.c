#include "store/query/range_query.h"

#include "lib/base/clock.h"
#include "lib/base/flight_cache.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/report/label_filter.h"
#include "store/query/cadence.h"
#include "store/query/counter_increase.h"
#include "store/query/neighbours.h"
#include "store/query/range_groups.h"
#include "store/query/range_result.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"
#include "store/query/spread.h"
#include "store/query/stack_filter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static_assert((int)SPREAD_SLACK_PART == (int)BLOCK_SLACK_PART, "granules without gaps have none");

/* Groups of a series: NO_GROUP yet, one group's number, or SEVERAL_GROUPS. */
#define NO_GROUP UINT32_MAX
#define SEVERAL_GROUPS (UINT32_MAX - 1)

/* Memory for the steps of groups that may not be among the largest: 2,000 groups of 250 steps. A
 * query with more groups reads the largest ones a second time. */
enum { CELL_BUDGET_BYTES = 32 << 20 };

/* The value of one profile in one group. */
struct row_sum {
    int64_t value;
    uint32_t group;
    uint32_t ordinal;
};

/* The sum of an hour with totals only in one group; of gauges. */
struct hour_sum {
    int64_t sum;
    int32_t hour;
    uint32_t group;
};

struct range {
    struct scan *scan;
    const struct store_range_query *query;
    enum store_aggregation aggregation;
    struct spread_steps steps;
    uint32_t step_count;
    struct stack_filters *filters;
    struct stack_filter_query question;
    const bool **kept_stacks; /* per block in use: per stack; NULL: not yet known */
    struct flight_entry **kept_entries;
    uint32_t kept_count; /* blocks in use */
    size_t kept_bytes;
    struct row_labels *labels;
    struct range_groups *groups; /* by the number of the labels' group */
    uint32_t *groups_of_series;  /* a group's number, NO_GROUP or SEVERAL_GROUPS */
    bool is_second_pass;
    bool lacks_neighbours;  /* the query has to run again, with neighbours */
    uint64_t unknown_count; /* spread.unknown_count after the first pass */
    int64_t *intervals_ns;  /* of series with a known interval; see note_series_interval */
    uint32_t interval_count;
    uint64_t checked_at; /* spread.add_count at the last check of the limits */
    struct neighbours neighbours;
    /* The current series: */
    struct spread spread;
    bool has_left_out;  /* a task was skipped: none of its rows is wanted, or it has none */
    bool has_lost_rows; /* rows of deltas or gauges were read whose labels are not wanted */
    struct counter_increase increase;
    struct map_u64 cut_hours; /* hours with totals only that extend over several steps */
    struct map_u64 gained;    /* indexes of values, by time of the snapshot */
    struct hour_sum *hour_sums;
    uint32_t hour_sum_count;
    uint32_t hour_sum_capacity;
    /* The current granule: */
    int64_t *values; /* per profile, of one group */
    uint32_t value_capacity;
    struct map_u64 row_numbers; /* of the other groups, by group and ordinal */
    struct row_sum *row_sums;
    uint32_t row_sum_count;
    uint32_t row_sum_capacity;
    uint32_t *keys; /* per row */
    uint32_t key_capacity;
    struct store_range result;
};

static size_t memory_of(const struct range *range)
{
    return range_groups_memory(range->groups) + range->kept_bytes +
           row_labels_memory(range->labels) +
           range->scan->series_count *
               (sizeof(*range->groups_of_series) + sizeof(*range->intervals_ns)) +
           spread_memory(&range->spread) + range->value_capacity * sizeof(*range->values) +
           range->row_sum_capacity * (sizeof(*range->row_sums) + 2 * sizeof(struct map_u64_slot)) +
           range->key_capacity * sizeof(*range->keys) +
           range->hour_sum_capacity * sizeof(*range->hour_sums) +
           counter_increase_memory(&range->increase);
}

static enum err_code check_limits(const struct range *range)
{
    return scan_check_limits(range->scan, memory_of(range));
}

/* Limits are checked between tasks; a single profile can be in thousands of steps, so also every
 * CHECK_EVERY additions. */
static enum err_code check_work(struct range *range)
{
    enum { CHECK_EVERY = 1 << 18 };
    if (range->spread.add_count - range->checked_at < CHECK_EVERY)
        return ERR_NONE;
    range->checked_at = range->spread.add_count;
    return check_limits(range);
}

static uint32_t step_of(const struct range *range, int64_t time_ns)
{
    return spread_step_of(&range->spread.steps, time_ns);
}

static enum err_code find_kept_stacks(struct range *range, const struct scan_task *task,
                                      const bool **ret_keeps)
{
    const bool **kept_stacks = &range->kept_stacks[task->block_index];
    enum err_code code = ERR_NONE;
    if (!*kept_stacks) {
        code = stack_filters_ref(
            range->filters, &range->question, task->block, &range->scan->statistics.names,
            &range->kept_entries[task->block_index], kept_stacks, range->scan->err);
        range->kept_bytes += block_dictionary(task->block)->stacks.stack_count;
    }
    *ret_keeps = *kept_stacks;
    return scan_explain_wait(range->scan, code);
}

/* True when all the time that the granule's profiles cover is in one step. */
static bool is_in_one_step(const struct range *range, const struct scan_task *task)
{
    const struct store_query *query = &range->query->query;
    const struct block_granule *granule = task->granule;
    return granule->begin_ns >= query->start_ns && granule->reach_ns > granule->begin_ns &&
           granule->reach_ns <= query->end_ns &&
           step_of(range, granule->begin_ns) == step_of(range, granule->reach_ns - 1);
}

/* True when the granule can be read as one value: gapless deltas are as one delta over their whole
 * time. A profile that extends into the next step has its own part there, so all must be in one
 * step. */
static bool is_one_value(const struct range *range, const struct scan_task *task)
{
    return range->aggregation == STORE_SUM && task->granule->flags & BLOCK_IS_GAPLESS &&
           scan_is_whole(task) &&
           (task->granule->profile_count == 1 || is_in_one_step(range, task));
}

/* An hour with totals only cannot be divided between steps. */
static bool is_cut(const struct range *range, const struct scan_task *task)
{
    int64_t first_ns, last_ns;
    scan_find_hour(task->granule, &first_ns, &last_ns);
    return task->are_totals && step_of(range, first_ns) != step_of(range, last_ns);
}

/* ---- reading ---- */

static enum err_code read_whole(struct range *range, struct scan_task *task, uint32_t group)
{
    struct scan *scan = range->scan;
    const struct block_granule *granule = task->granule;
    const bool *kept_stacks = NULL;
    struct block_totals totals = {0};
    int64_t value = granule->total;
    enum err_code code = ERR_NONE;
    if (range->query->filter) {
        code = find_kept_stacks(range, task, &kept_stacks);
        if (code)
            return code;
        code = block_read_totals(task->block, granule, scan->cursor, &totals, scan->err);
        value = 0;
    }
    for (uint32_t i = 0; !code && i < totals.count; i++)
        value += kept_stacks[totals.stacks[i]] ? totals.sums[i] : 0;
    if (!code) {
        spread_add(&range->spread, group, granule->begin_ns, granule->reach_ns - granule->begin_ns,
                   value);
        spread_cover_span(&range->spread, granule->begin_ns, granule->reach_ns,
                          granule->longest_ns);
    }
    return scan_note_read(scan, task, kept_stacks ? granule->row_count : 0,
                          kept_stacks ? granule->extent_bytes[BLOCK_TOTALS] : 0, code);
}

/* Sets values[i] to what the filter keeps of profile i. */
static enum err_code read_values(struct range *range, const struct scan_task *task)
{
    const struct block_granule *granule = task->granule;
    const bool *kept_stacks;
    struct block_rows rows;
    enum err_code code = find_kept_stacks(range, task, &kept_stacks);
    if (!code)
        code = block_read_rows(task->block, granule, range->scan->cursor, false, &rows,
                               range->scan->err);
    if (code)
        return code;
    vec_reserve(range->values, range->value_capacity, granule->profile_count);
    memset(range->values, 0, granule->profile_count * sizeof(*range->values));
    for (uint32_t i = 0; i < rows.row_count; i++)
        range->values[rows.ordinals[i]] += kept_stacks[rows.stacks[i]] ? rows.values[i] : 0;
    return ERR_NONE;
}

/* A snapshot has no duration, whatever it was sent with. */
static int64_t duration_of(const struct range *range, const struct block_profile *profile)
{
    return range->aggregation == STORE_SUM ? profile->duration_ns : 0;
}

/* Here and below, profiles start at the ordinal task->first. */
static void cover_profiles(struct range *range, const struct scan_task *task,
                           const struct block_profile *profiles)
{
    for (uint32_t i = task->first; i < task->end; i++) {
        const struct block_profile *profile = &profiles[i - task->first];
        const int64_t duration_ns = duration_of(range, profile);
        spread_cover(&range->spread, profile->time_ns, duration_ns);
        if (duration_ns <= 0)
            neighbours_note(&range->neighbours, profile->time_ns);
    }
}

static int32_t hour_of(int64_t time_ns)
{
    const int64_t hour_ns = 3600 * CLOCK_NS_PER_S;
    return (int32_t)(time_ns / hour_ns - (time_ns % hour_ns < 0));
}

/* Only the sums of an hour's snapshots are known, per granule. They are divided when all granules
 * are read. */
static void add_hour_sum(struct range *range, uint32_t group, int32_t hour, int64_t sum)
{
    for (uint32_t i = 0; i < range->hour_sum_count; i++) {
        struct hour_sum *one = &range->hour_sums[i];
        if (one->group == group && one->hour == hour) {
            one->sum += sum;
            return;
        }
    }
    vec_reserve(range->hour_sums, range->hour_sum_capacity, range->hour_sum_count + 1);
    range->hour_sums[range->hour_sum_count++] =
        (struct hour_sum){.group = group, .hour = hour, .sum = sum};
}

/* Each snapshot time of the hour gets an equal part. */
static void share_hour_sum(struct range *range, const struct hour_sum *hour)
{
    const struct spread *spread = &range->spread;
    uint32_t first = 0, count = 0;
    while (first < spread->time_count && hour_of(spread->times_ns[first]) < hour->hour)
        first++;
    while (first + count < spread->time_count &&
           hour_of(spread->times_ns[first + count]) == hour->hour)
        count++;
    for (uint32_t i = 0; i < count; i++) {
        const __int128 before = (__int128)hour->sum * i / count;
        const __int128 after = (__int128)hour->sum * (i + 1) / count;
        spread_add(&range->spread, hour->group, spread->times_ns[first + i], 0,
                   (int64_t)(after - before));
    }
}

static void share_hour_sums(struct range *range)
{
    struct spread *spread = &range->spread;
    if (!range->hour_sum_count)
        return;
    spread->time_count = cadence_order(spread->times_ns, spread->time_count);
    for (uint32_t i = 0; i < range->hour_sum_count; i++)
        share_hour_sum(range, &range->hour_sums[i]);
    range->hour_sum_count = 0;
}

/* Divides the sum of an hour with totals only among its profiles, by their durations. A step
 * contains such an hour as a whole, so if a duration is missing the sum goes to that step
 * undivided. */
static void share_sum(struct range *range, const struct scan_task *task, uint32_t group,
                      const struct block_profile *profiles, int64_t sum)
{
    __int128 all_ns = 0, done_ns = 0;
    bool is_known = true;
    for (uint32_t i = task->first; i < task->end; i++) {
        const int64_t duration_ns = profiles[i - task->first].duration_ns;
        is_known = is_known && duration_ns > 0;
        all_ns += duration_ns;
    }
    if (!is_known) {
        spread_add_at(&range->spread, group, profiles->time_ns, sum);
        return;
    }
    /* Each duration is below 2^63, but the product with a sum may overflow: durations are then
     * divided by unit_ns, which loses low digits of a profile's part. */
    const __int128 unit_ns = all_ns > INT64_MAX ? all_ns / INT64_MAX + 1 : 1;
    int64_t before = 0;
    for (uint32_t i = task->first; i < task->end; i++) {
        const struct block_profile *profile = &profiles[i - task->first];
        done_ns += profile->duration_ns;
        const bool is_last = i + 1 == task->end;
        const int64_t after =
            is_last ? sum : (int64_t)(sum * (done_ns / unit_ns) / (all_ns / unit_ns));
        spread_add(&range->spread, group, profile->time_ns, profile->duration_ns, after - before);
        before = after;
    }
}

/* values[i] belongs to ordinal i; NULL: each profile's total. */
static enum err_code add_profiles(struct range *range, const struct scan_task *task, uint32_t group,
                                  const struct block_profile *profiles, const int64_t *values)
{
    enum err_code code = ERR_NONE;
    int64_t sum = 0;
    for (uint32_t i = task->first; i < task->end && !code; i++) {
        const struct block_profile *profile = &profiles[i - task->first];
        const int64_t value = values ? values[i] : profile->total;
        if (task->are_totals)
            sum += value;
        else
            spread_add(&range->spread, group, profile->time_ns, duration_of(range, profile), value);
        code = check_work(range);
    }
    if (task->are_totals && range->aggregation == STORE_SUM)
        share_sum(range, task, group, profiles, sum);
    else if (task->are_totals)
        add_hour_sum(range, group, task->granule->hour, sum);
    return code;
}

/* The profiles that the scan has read to find the range, else they are read now. */
static enum err_code find_profiles(struct range *range, const struct scan_task *task,
                                   const struct block_profile **ret_profiles)
{
    struct scan *scan = range->scan;
    const struct block_profile *profiles;
    if (task->profiles) {
        *ret_profiles = task->profiles;
        return ERR_NONE;
    }
    enum err_code code =
        block_read_profiles(task->block, task->granule, scan->cursor, &profiles, scan->err);
    if (!code)
        *ret_profiles = profiles + task->first;
    return code;
}

static enum err_code read_profiles(struct range *range, struct scan_task *task, uint32_t group)
{
    struct scan *scan = range->scan;
    const struct block_granule *granule = task->granule;
    const bool has_filter = range->query->filter != NULL;
    const struct block_profile *profiles = NULL;
    enum err_code code = has_filter ? read_values(range, task) : ERR_NONE;
    if (!code)
        code = find_profiles(range, task, &profiles);
    code = scan_note_read(scan, task, has_filter ? granule->row_count : 0,
                          granule->extent_bytes[BLOCK_PROFILES] +
                              (has_filter ? granule->extent_bytes[BLOCK_ROWS] : 0),
                          code);
    if (code || task->is_broken)
        return code;
    cover_profiles(range, task, profiles);
    return add_profiles(range, task, group, profiles, has_filter ? range->values : NULL);
}

/*
 * Only the time that the profiles cover counts: there are no rows, or their labels are not wanted.
 */
static enum err_code read_times(struct range *range, struct scan_task *task)
{
    struct scan *scan = range->scan;
    const struct block_granule *granule = task->granule;
    const struct block_profile *profiles = NULL;
    if (is_one_value(range, task)) {
        spread_cover_span(&range->spread, granule->begin_ns, granule->reach_ns,
                          granule->longest_ns);
        return scan_note_read(scan, task, 0, 0, ERR_NONE);
    }
    enum err_code code = find_profiles(range, task, &profiles);
    if (!code)
        cover_profiles(range, task, profiles);
    return scan_note_read(scan, task, 0, granule->extent_bytes[BLOCK_PROFILES], code);
}

/* ---- row by row ---- */

static bool keeps_row(const bool *kept_stacks, const struct block_rows *rows, uint32_t row)
{
    return !kept_stacks || kept_stacks[rows->stacks[row]];
}

static uint32_t group_of_row(struct range *range, const struct block_rows *rows, uint32_t row)
{
    return row_labels_group(range->labels, rows->label_sets ? rows->label_sets[row] : 0);
}

/* The key of a row is its group and whether the filter keeps it: a row that it does not keep still
 * shows that the group has data. */
static void add_snapshots(struct range *range, const struct scan_task *task,
                          const struct block_rows *rows, const bool *kept_stacks)
{
    vec_reserve(range->keys, range->key_capacity, rows->row_count);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t group = group_of_row(range, rows, i);
        range->keys[i] = row_labels_stays(group) ? group * 2 + keeps_row(kept_stacks, rows, i)
                                                 : COUNTER_INCREASE_LEFT_OUT;
    }
    counter_increase_add(&range->increase, task->block, rows, task->first, task->end, range->keys);
    for (uint32_t i = task->first; i < task->end; i++)
        neighbours_note(&range->neighbours, rows->profiles[i].time_ns);
}

/* Adds equal parts that add up to the value. */
static void add_timestamps(struct range *range, uint32_t group, int64_t value,
                           const int64_t *timestamps, uint32_t count)
{
    const struct store_query *query = &range->query->query;
    for (uint32_t i = 0; i < count; i++) {
        const __int128 before = (__int128)value * i / count;
        const __int128 after = (__int128)value * (i + 1) / count;
        if (timestamps[i] >= query->start_ns && timestamps[i] < query->end_ns)
            spread_add_at(&range->spread, group, timestamps[i], (int64_t)(after - before));
    }
}

static void add_to_profile(struct range *range, uint32_t group, uint32_t ordinal, int64_t value)
{
    const uint64_t key = (uint64_t)group << 32 | ordinal;
    const uint32_t number = map_u64_add(&range->row_numbers, key, range->row_sum_count);
    if (number == range->row_sum_count) {
        vec_reserve(range->row_sums, range->row_sum_capacity, range->row_sum_count + 1);
        range->row_sums[range->row_sum_count++] =
            (struct row_sum){.group = group, .ordinal = ordinal};
    }
    range->row_sums[number].value += value;
}

/* The rows of a profile in one group count as one value, as they do without labels. values has the
 * sum of the groups before, per profile. */
static enum err_code spread_row_sums(struct range *range, const struct block_profile *profiles)
{
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < range->row_sum_count && !code; i++) {
        const struct row_sum *sum = &range->row_sums[i];
        const struct block_profile *profile = &profiles[sum->ordinal];
        int64_t *before = &range->values[sum->ordinal];
        if (profile->duration_ns > 0)
            spread_add_part(&range->spread, sum->group, profile->time_ns, profile->duration_ns,
                            *before, sum->value);
        else
            spread_add(&range->spread, sum->group, profile->time_ns, 0, sum->value);
        *before += sum->value;
        code = check_work(range);
    }
    map_u64_fini(&range->row_numbers);
    range->row_numbers = (struct map_u64){0};
    range->row_sum_count = 0;
    return code;
}

/* Most granules have one group: the values of the first one need no look-up. Rows that a filter
 * leaves out still count as 0, so that their group has data. */
static enum err_code add_deltas(struct range *range, const struct scan_task *task,
                                const struct block_rows *rows, const bool *kept_stacks)
{
    const int64_t *next = rows->timestamps;
    uint32_t first_group = ROW_LABELS_LEFT_OUT;
    enum err_code code = ERR_NONE;
    vec_reserve(range->values, range->value_capacity, task->granule->profile_count);
    memset(range->values, 0, task->granule->profile_count * sizeof(*range->values));
    for (uint32_t i = 0; i < rows->row_count && !code; i++) {
        const uint32_t ordinal = rows->ordinals[i];
        const uint32_t timestamp_count = rows->timestamp_counts ? rows->timestamp_counts[i] : 0;
        const int64_t *timestamps = next;
        next = timestamp_count ? next + timestamp_count : next;
        if (ordinal < task->first || ordinal >= task->end)
            continue;
        const uint32_t group = group_of_row(range, rows, i);
        const int64_t value = keeps_row(kept_stacks, rows, i) ? rows->values[i] : 0;
        if (!row_labels_stays(group)) {
            range->has_lost_rows = true;
            continue;
        }
        if (timestamp_count && range->query->is_by_timestamps) {
            add_timestamps(range, group, value, timestamps, timestamp_count);
            code = check_work(range);
            continue;
        }
        if (first_group == ROW_LABELS_LEFT_OUT)
            first_group = group;
        if (group == first_group)
            range->values[ordinal] += value;
        else
            add_to_profile(range, group, ordinal, value);
    }
    cover_profiles(range, task, rows->profiles + task->first);
    if (!code && first_group != ROW_LABELS_LEFT_OUT)
        code = add_profiles(range, task, first_group, rows->profiles + task->first, range->values);
    return code ? code : spread_row_sums(range, rows->profiles);
}

static void add_gauges(struct range *range, const struct scan_task *task,
                       const struct block_rows *rows, const bool *kept_stacks)
{
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t ordinal = rows->ordinals[i];
        if (ordinal < task->first || ordinal >= task->end)
            continue;
        const uint32_t group = group_of_row(range, rows, i);
        if (row_labels_stays(group))
            spread_add(&range->spread, group, rows->profiles[ordinal].time_ns, 0,
                       keeps_row(kept_stacks, rows, i) ? rows->values[i] : 0);
        else
            range->has_lost_rows = true;
    }
    cover_profiles(range, task, rows->profiles + task->first);
}

static enum err_code read_rows(struct range *range, struct scan_task *task, bool wants_labels,
                               bool wants_timestamps)
{
    struct scan *scan = range->scan;
    const struct block_granule *granule = task->granule;
    const uint32_t *bytes = granule->extent_bytes;
    const bool *kept_stacks = NULL;
    struct block_rows rows;
    enum err_code code =
        range->query->filter ? find_kept_stacks(range, task, &kept_stacks) : ERR_NONE;
    if (code)
        return code;
    const bool wants_details = wants_labels || wants_timestamps;
    code = block_read_rows(task->block, granule, scan->cursor, wants_details, &rows, scan->err);
    if (!wants_labels)
        rows.label_sets = NULL;
    code = scan_note_read(scan, task, granule->row_count,
                          bytes[BLOCK_ROWS] + (wants_details ? bytes[BLOCK_DETAILS] : 0), code);
    if (code || task->is_broken)
        return code;
    if (range->aggregation == STORE_SUM)
        return add_deltas(range, task, &rows, kept_stacks);
    if (range->aggregation == STORE_MEAN)
        add_gauges(range, task, &rows, kept_stacks);
    else
        add_snapshots(range, task, &rows, kept_stacks);
    return ERR_NONE;
}

/* Deltas and gauges of a granule without rows have no labels of samples: they are time in which
 * each group of the series is 0. Such profiles may share a granule with others or have one of their
 * own, which compaction changes. */
static bool is_idle(const struct range *range, const struct scan_task *task)
{
    return range->aggregation != STORE_DIFFERENCE && !task->granule->row_count;
}

static enum err_code read_task(struct range *range, struct scan_task *task)
{
    if (is_cut(range, task)) {
        if (!range->is_second_pass)
            scan_note_cut(range->scan, task);
        if (range->aggregation != STORE_DIFFERENCE)
            return ERR_NONE;
        map_u64_add(&range->cut_hours, (uint32_t)task->granule->hour, 0);
    }
    if (is_idle(range, task) && range->aggregation == STORE_MEAN)
        return read_times(range, task);
    if (is_idle(range, task)) {
        range->has_left_out = true;
        return ERR_NONE;
    }
    row_labels_begin(range->labels, task->block, task->granule);
    const bool wants_labels =
        !task->are_totals && row_labels_wants_rows(range->labels, task->granule);
    const bool wants_timestamps = !task->are_totals && range->query->is_by_timestamps &&
                                  (task->granule->flags & BLOCK_HAS_TIMESTAMPS);
    const bool wants_rows =
        wants_labels || wants_timestamps || range->aggregation == STORE_DIFFERENCE;
    if (wants_rows || range->query->filter) {
        enum err_code code = scan_open_stacks(range->scan, task);
        if (code || task->is_broken)
            return code;
    }
    if (wants_rows)
        return read_rows(range, task, wants_labels, wants_timestamps);
    const uint32_t group = row_labels_group(range->labels, 0);
    if (!row_labels_stays(group) && range->aggregation == STORE_MEAN)
        return read_times(range, task);
    if (!row_labels_stays(group)) {
        range->has_left_out = true;
        return ERR_NONE;
    }
    return is_one_value(range, task) ? read_whole(range, task, group)
                                     : read_profiles(range, task, group);
}

/* ---- series by series ---- */

/* Snapshots of an hour that is left out are still the base of later gains. */
static bool is_in_cut_hour(const struct range *range, int64_t time_ns)
{
    return map_u64_find(&range->cut_hours, (uint32_t)hour_of(time_ns)) != MAP_ABSENT;
}

static void cover_gains(void *context, int64_t since_ns, int64_t time_ns)
{
    struct range *range = context;
    if (!is_in_cut_hour(range, time_ns))
        spread_cover(&range->spread, since_ns, time_ns - since_ns);
}

/* The sum of the gains that other groups had until a snapshot. */
static int64_t *find_gained(struct range *range, int64_t time_ns)
{
    const uint32_t count = range->gained.count;
    const uint32_t number = map_u64_add(&range->gained, (uint64_t)time_ns, count);
    vec_reserve(range->values, range->value_capacity, number + 1);
    if (number == count)
        range->values[number] = 0;
    return &range->values[number];
}

static void add_gain(void *context, const struct counter_gain *gained)
{
    struct range *range = context;
    if (is_in_cut_hour(range, gained->time_ns))
        return;
    const int64_t value = gained->key % 2 ? gained->value : 0;
    int64_t *before = find_gained(range, gained->time_ns);
    spread_add_part(&range->spread, gained->key / 2, gained->since_ns,
                    gained->time_ns - gained->since_ns, *before, value);
    *before += value;
}

/* A group is covered wherever its series are, whether its labels occur there or not. */
static void add_to_groups(struct range *range, uint32_t series)
{
    uint32_t *groups = &range->groups_of_series[series];
    for (uint32_t i = 0; i < range->spread.sum_count; i++) {
        const struct spread_sum *sum = &range->spread.sums[i];
        range_groups_add(range->groups, sum->group, sum->step, sum->sum);
        range_groups_cover(range->groups, sum->group, series, &range->spread.covered);
        *groups = *groups == NO_GROUP || *groups == sum->group ? sum->group : SEVERAL_GROUPS;
    }
}

static void begin_series(struct range *range)
{
    spread_begin_series(&range->spread);
    map_u64_fini(&range->cut_hours);
    range->cut_hours = (struct map_u64){0};
    map_u64_fini(&range->gained);
    range->gained = (struct map_u64){0};
    range->has_left_out = range->has_lost_rows = false;
    neighbours_begin_series(&range->neighbours);
    range->hour_sum_count = 0;
}

/* True when no row of the granule is wanted, or it has none. */
static bool is_left_out(struct range *range, const struct scan_task *task)
{
    if (neighbours_is_unread(task) || is_cut(range, task))
        return false;
    if (is_idle(range, task))
        return true;
    row_labels_begin(range->labels, task->block, task->granule);
    return (task->are_totals || !row_labels_wants_rows(range->labels, task->granule)) &&
           !row_labels_stays(row_labels_group(range->labels, 0));
}

/* Where some rows of the series are wanted, its other granules are time in which the value was 0. A
 * series without any row in the window is in the group of its own labels. */
static enum err_code read_left_out(struct range *range, struct scan_task *tasks, uint32_t begin,
                                   uint32_t end)
{
    enum err_code code = ERR_NONE;
    const bool is_there = range->spread.sum_count || range->spread.unknown_sums;
    for (uint32_t i = begin; i < end && !code && range->has_left_out; i++) {
        struct scan_task *task = &tasks[i];
        if (is_left_out(range, task) && (is_there || is_idle(range, task)))
            code = read_times(range, task);
    }
    return code;
}

/* The series has no rows in the window: its first covered span adds a 0 to its own group. */
static void add_idle_series(struct range *range, const struct scan_task *task)
{
    const struct coverage *covered = &range->spread.covered;
    if (range->aggregation == STORE_DIFFERENCE || range->spread.sum_count || range->has_lost_rows ||
        !covered->count)
        return;
    row_labels_begin(range->labels, task->block, task->granule);
    const uint32_t group = row_labels_group(range->labels, 0);
    const struct coverage_span *first = &covered->spans[0];
    if (row_labels_stays(group))
        spread_add(&range->spread, group, first->begin_ns, first->end_ns - first->begin_ns, 0);
}

/* A series of deltas that all have a duration has interval 0: nothing is unknown within a step. A
 * single profile without a duration has no interval. */
static void note_series_interval(struct range *range)
{
    const struct spread *spread = &range->spread;
    const bool is_known = spread->interval_ns || !spread->time_count;
    if (range->aggregation == STORE_SUM && !range->is_second_pass && is_known && spread->sum_count)
        range->intervals_ns[range->interval_count++] = spread->interval_ns;
}

static enum err_code read_neighbours(struct range *range, struct scan_task *tasks, uint32_t begin,
                                     uint32_t end, bool is_before)
{
    struct scan_task *task;
    enum err_code code = neighbours_next(&range->neighbours, tasks, begin, end, is_before, &task);
    while (!code && task) {
        if (task->first < task->end)
            code = read_task(range, task);
        if (!code)
            code = check_limits(range);
        if (!code)
            code = neighbours_next(&range->neighbours, tasks, begin, end, is_before, &task);
    }
    return code;
}

static void end_series(struct range *range, const struct scan_task *task)
{
    uint32_t count = 0;
    const int64_t *times_ns = counter_increase_times(&range->increase, &count);
    share_hour_sums(range);
    spread_end_series(&range->spread);
    add_idle_series(range, task);
    if (range->aggregation == STORE_DIFFERENCE)
        neighbours_end_series(&range->neighbours, times_ns, count);
    else
        neighbours_end_series(&range->neighbours, range->spread.times_ns, range->spread.time_count);
    counter_increase_fini(&range->increase);
    note_series_interval(range);
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
        code = read_task(range, &tasks[i]);
        if (!code)
            code = check_limits(range);
    }
    if (!code)
        code = read_neighbours(range, tasks, begin, end, true);
    return code ? code : read_neighbours(range, tasks, begin, end, false);
}

static enum err_code read_series(struct range *range, struct scan_task *tasks, uint32_t begin,
                                 uint32_t end)
{
    begin_series(range);
    enum err_code code = read_tasks(range, tasks, begin, end);
    if (!code && range->aggregation == STORE_DIFFERENCE)
        counter_increase_compute(&range->increase, cover_gains, add_gain, range);
    else if (!code)
        code = read_left_out(range, tasks, begin, end);
    end_series(range, &tasks[begin]);
    if (!code)
        add_to_groups(range, tasks[begin].series);
    return code;
}

/* Whether deltas lack a duration is known only after they are read, or from the granules before the
 * window. */
static bool lacks_neighbours(const struct range *range)
{
    return !range->scan->query->ahead_ns && range->scan->type_count &&
           (range->aggregation != STORE_SUM || range->spread.unknown_count ||
            range->scan->has_open_ends_before);
}

static bool wants_series(const struct range *range, uint32_t series)
{
    const uint32_t group = range->groups_of_series[series];
    return !range->is_second_pass || group == SEVERAL_GROUPS ||
           range_groups_wants(range->groups, group);
}

static enum err_code read_pass(struct range *range)
{
    const struct scan *scan = range->scan;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0, end; i < scan->task_count && !code && !lacks_neighbours(range); i = end) {
        const uint32_t series = scan->tasks[i].series;
        for (end = i; end < scan->task_count && scan->tasks[end].series == series;)
            end++;
        if (wants_series(range, series))
            code = read_series(range, scan->tasks, i, end);
    }
    return code ? code : check_limits(range);
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

/* The second pass does not count in the statistics or against the limit of bytes. */
static enum err_code read_again(struct range *range, uint64_t opening_bytes)
{
    struct store_statistics *statistics = &range->scan->statistics;
    const struct store_statistics first = *statistics;
    range->is_second_pass = true;
    statistics->bytes_read = opening_bytes;
    const enum err_code code = read_pass(range);
    statistics->granule_count = first.granule_count;
    statistics->row_count = first.row_count;
    statistics->bytes_read = first.bytes_read;
    return code;
}

static enum err_code read_all(struct range *range)
{
    const uint64_t opening_bytes = range->scan->statistics.bytes_read;
    scan_sort_by_series(range->scan);
    enum err_code code = read_pass(range);
    range->unknown_count = range->aggregation == STORE_SUM ? range->spread.unknown_count : 0;
    if (code || lacks_neighbours(range) ||
        !range_groups_choose(range->groups, compare_groups, range))
        return code;
    return read_again(range, opening_bytes);
}

static void make_result(struct range *range)
{
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
    };
    range_result_make(range->scan, &sums, &range->result);
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
    map_u64_fini(&range->cut_hours);
    range->cut_hours = (struct map_u64){0};
    map_u64_fini(&range->gained);
    range->gained = (struct map_u64){0};
    counter_increase_fini(&range->increase);
}

/*
 * Computes values over time from the tasks of a scan.
 *
 * Each series is read by itself. Its values go into `spread`, which turns them into sums per group
 * and step and into covered time; both are then added to `groups`. A task is read in the cheapest
 * form that is exact: as one value (is_one_value), as profiles with their sums, or as rows when a
 * filter, labels of samples, timestamps or a counter need them. If the largest groups turn out to
 * lack cells, their series are read a second time (read_again).
 *
 * The function may run several times: for a longer reach, or when the scan starts again. It begins
 * by freeing what an earlier run left.
 */
static enum err_code compute_range(struct scan *scan, void *context)
{
    struct range *range = context;
    enum err_code code = scan_check_types(scan);
    if (!code)
        code = scan_check_magnitude(scan);
    if (code)
        return code;
    scan_count_unlabelled(scan, range->query->group_by, range->query->group_by_count);
    range->scan = scan;
    range->aggregation = scan->type_count ? scan->types[0].aggregation : STORE_SUM;
    if (range->query->is_by_timestamps && range->aggregation != STORE_SUM)
        return err_set(scan->err, ERR_INVALID,
                       "moments: %s is not a delta and has no timestamps: leave out moments",
                       scan->types[0].name);
    if (range->query->is_rate && range->aggregation == STORE_MEAN)
        return err_set(scan->err, ERR_INVALID,
                       "rate: %s is a gauge, which has no rate: set rate=false",
                       scan->types[0].name);
    range_fini(range); /* from an earlier run of the scan */
    spread_init(&range->spread, &range->steps);
    range->spread.are_gauges = range->aggregation == STORE_MEAN;
    range->checked_at = 0;
    neighbours_init(&range->neighbours, scan);
    range->intervals_ns = arena_new_raw(scan->arena, int64_t, scan->series_count);
    range->interval_count = 0;
    range->kept_stacks = arena_new(scan->arena, const bool *, scan->block_count);
    range->kept_entries = arena_new(scan->arena, struct flight_entry *, scan->block_count);
    range->kept_count = scan->block_count;
    range->kept_bytes = 0;
    range->groups =
        range_groups_create(range->step_count, range->query->max_series, CELL_BUDGET_BYTES);
    range->groups_of_series = arena_new_raw(scan->arena, uint32_t, scan->series_count);
    memset(range->groups_of_series, 0xff, scan->series_count * sizeof(*range->groups_of_series));
    range->is_second_pass = false;
    range->labels =
        row_labels_create(scan->arena, range->query->query.label_filter, scan->row_selectors,
                          range->query->group_by, range->query->group_by_count, ROW_LABELS_TEXTS);
    code = read_all(range);
    range->lacks_neighbours = lacks_neighbours(range);
    if (!code && !range->lacks_neighbours)
        code = row_labels_check(range->labels, scan->err);
    if (!code && !range->lacks_neighbours)
        make_result(range);
    return code;
}

static int64_t max_ns(int64_t one_ns, int64_t other_ns)
{
    return one_ns > other_ns ? one_ns : other_ns;
}

/* Returns whether the query has to run again with a longer reach. Durations of profiles before the
 * window, and intervals, are known only after some have been read. */
static bool extend_reach(const struct range *range, struct store_query *query)
{
    int64_t wanted_ns = range->neighbours.wanted_reach_ns;
    if (range->lacks_neighbours || !range->result.type)
        wanted_ns = max_ns(wanted_ns, NEIGHBOURS_REACH_NS);
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
    do {
        range->result = (struct store_range){0};
        code = scan_run(source, &reaching, SCAN_TASKS, arena, compute_range, range, err);
    } while (!code && extend_reach(range, &reaching));
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
        .question = {.filter = query->filter,
                     .resolver = source->resolver,
                     .tenant_id = query->query.tenant_id,
                     .wait_limit = &query->query.wait_limit},
    };
    if (query->filter)
        range.question.rules = stack_filter_key(arena, query->filter);
    enum err_code code = scan_until_reached(source, arena, &query->query, &range, err);
    range_fini(&range);
    mem_free(range.values);
    mem_free(range.row_sums);
    mem_free(range.keys);
    mem_free(range.hour_sums);
    if (code)
        return code;
    if (!range.result.type && !range.result.statistics.broken_count)
        code = scan_explain_nothing(source, &query->query, arena, err);
    if (code)
        return code;
    *ret_range = range.result;
    return ERR_NONE;
}

#include "store/query/range_internal.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "store/values/cadence.h"

#include <assert.h>
#include <string.h>

static_assert((int)SPREAD_SLACK_PART == (int)BLOCK_SLACK_PART, "granules without gaps have none");

static size_t memory_of(const struct range *range)
{
    return range_groups_memory(range->groups) + range->kept_bytes +
           row_labels_memory(range->labels) +
           range->series_count * (sizeof(*range->groups_of_series) + sizeof(*range->intervals_ns)) +
           spread_memory(&range->spread) + range->value_capacity * sizeof(*range->values) +
           range->row_sum_capacity * (sizeof(*range->row_sums) + 2 * sizeof(struct map_u64_slot)) +
           range->key_capacity * sizeof(*range->keys) + counter_increase_memory(&range->increase) +
           partial_coverage_memory(&range->partial);
}

enum err_code range_check_limits(const struct range *range)
{
    return scan_check_limits(range->scan, memory_of(range));
}

enum err_code range_check_more(void *context, size_t bytes, struct err *err)
{
    const struct range *range = context;
    const enum err_code code = scan_check_limits(range->scan, memory_of(range) + bytes);
    if (code && err != scan_err(range->scan))
        *err = *scan_err(range->scan);
    return code;
}

/* Limits are checked between tasks; a single profile can be in thousands of steps, so also every
 * CHECK_EVERY additions. */
static enum err_code check_work(struct range *range)
{
    enum { CHECK_EVERY = 1 << 18 };
    if (range->spread.add_count - range->checked_at < CHECK_EVERY)
        return ERR_NONE;
    range->checked_at = range->spread.add_count;
    return range_check_limits(range);
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
            range->filters, &range->stack_query, task->block, scan_symbolization(range->scan),
            &range->kept_entries[task->block_index], kept_stacks, scan_err(range->scan));
        range->kept_bytes += block_dictionary(task->block)->stacks.stack_count;
    }
    *ret_keeps = *kept_stacks;
    return scan_explain_wait(range->scan, code);
}

/* True when all the time that the granule's profiles cover is in one step and in the window. */
static bool is_in_one_step(const struct range *range, const struct scan_task *task)
{
    const struct store_query *query = &range->query->query;
    const struct block_granule *granule = task->granule;
    return granule->begin_ns >= query->start_ns && granule->reach_ns > granule->begin_ns &&
           granule->reach_ns <= query->end_ns &&
           step_of(range, granule->begin_ns) == step_of(range, granule->reach_ns - 1);
}

static int64_t end_of_hour(const struct scan_task *task)
{
    int64_t first_ns, last_ns;
    scan_find_hour(task->granule, &first_ns, &last_ns);
    return last_ns < INT64_MAX ? last_ns + 1 : last_ns;
}

/* True when the granule can be read as one value: deltas without gaps count as one delta over their
 * whole time. If that time is in several steps, the value of each profile has to be divided by
 * itself, so it must be in one step, unless there is only one profile. */
static bool is_one_value(const struct range *range, const struct scan_task *task)
{
    return range->aggregation == STORE_SUM && task->granule->flags & BLOCK_IS_GAPLESS &&
           scan_is_whole(task) &&
           (!task->are_totals || task->granule->reach_ns <= end_of_hour(task)) &&
           (task->granule->profile_count == 1 || is_in_one_step(range, task));
}

bool range_is_cut(const struct range *range, const struct scan_task *task)
{
    int64_t first_ns, last_ns;
    scan_find_hour(task->granule, &first_ns, &last_ns);
    return task->are_totals && step_of(range, first_ns) != step_of(range, last_ns);
}

/* Counts the crowded hours of a series. Blocks that have a part of an hour follow each other. */
static void note_hour(struct range *range, const struct scan_task *task, __int128 all_ns,
                      int64_t over_ns)
{
    if (range->hour_series != task->series)
        range->hour = (struct spread_hour){0};
    range->hour_series = task->series;
    if (spread_hour_add(&range->hour, end_of_hour(task) - SPREAD_HOUR_NS, all_ns, over_ns))
        range->crowded_count += !range->is_second_pass;
}

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
        code = scan_read_totals(scan, task, &totals);
        value = 0;
    }
    for (uint32_t i = 0; !code && i < totals.count; i++)
        value += kept_stacks[totals.stacks[i]] ? totals.sums[i] : 0;
    if (!code) {
        spread_add(&range->spread, group, granule->begin_ns, granule->reach_ns - granule->begin_ns,
                   value);
        spread_cover_span(&range->spread, granule->begin_ns, granule->reach_ns,
                          granule->longest_ns);
        if (task->are_totals)
            note_hour(range, task, granule->reach_ns - granule->begin_ns, 0);
    }
    return scan_note_read(scan, task, kept_stacks ? granule->row_count : 0,
                          kept_stacks ? granule->extent_bytes[BLOCK_TOTALS] : 0, code);
}

/* Sets range->values[i] to the part of profile i's value that is in kept stacks. */
static enum err_code read_values(struct range *range, const struct scan_task *task)
{
    const struct block_granule *granule = task->granule;
    const bool *kept_stacks;
    struct block_rows rows;
    enum err_code code = find_kept_stacks(range, task, &kept_stacks);
    if (!code)
        code = scan_read_rows(range->scan, task, false, &rows);
    if (code)
        return code;
    vec_reserve(range->values, range->value_capacity, granule->profile_count);
    memset(range->values, 0, granule->profile_count * sizeof(*range->values));
    for (uint32_t i = 0; i < rows.row_count; i++)
        range->values[rows.ordinals[i]] += kept_stacks[rows.stacks[i]] ? rows.values[i] : 0;
    return ERR_NONE;
}

/* A snapshot has no duration, whatever it was sent with. The deltas of an hour with totals only end
 * with it, so that its whole total is in it and consecutive windows add up. */
static int64_t duration_of(const struct range *range, const struct scan_task *task,
                           const struct block_profile *profile)
{
    if (range->aggregation != STORE_SUM)
        return 0;
    const int64_t left_ns = task->are_totals ? end_of_hour(task) - profile->time_ns : INT64_MAX;
    return profile->duration_ns < left_ns ? profile->duration_ns : left_ns;
}

static void cover_overhangs(struct range *range, const struct scan_task *task,
                            const struct block_profile *profiles)
{
    int64_t longest_ns = 0;
    __int128 all_ns = 0;
    for (uint32_t i = task->first; i < task->end; i++) {
        const struct block_profile *profile = &profiles[i - task->first];
        const int64_t over_ns = profile->duration_ns - duration_of(range, task, profile);
        spread_cover_overhang(&range->spread, end_of_hour(task) - SPREAD_HOUR_NS, over_ns);
        all_ns += profile->duration_ns > 0 ? profile->duration_ns : 0;
        longest_ns = over_ns > longest_ns ? over_ns : longest_ns;
    }
    note_hour(range, task, all_ns, longest_ns);
}

/* Adds the time that the task's profiles cover. Here and below, profiles[0] is the profile with the
 * ordinal task->first. */
static void cover_profiles(struct range *range, const struct scan_task *task,
                           const struct block_profile *profiles)
{
    for (uint32_t i = task->first; i < task->end; i++) {
        const struct block_profile *profile = &profiles[i - task->first];
        const int64_t duration_ns = duration_of(range, task, profile);
        spread_cover(&range->spread, profile->time_ns, duration_ns);
        interleaving_add(&range->interleaving, profile->duration_ns);
        if (duration_ns > 0)
            continue;
        neighbours_note(&range->neighbours, profile->time_ns);
        if (task->are_totals)
            spread_note_hour(&range->spread, end_of_hour(task) - SPREAD_HOUR_NS);
    }
    if (task->are_totals && range->aggregation == STORE_SUM)
        cover_overhangs(range, task, profiles);
}

/* Divides the sum of an hour of deltas among its profiles, by their durations. A step
 * contains such an hour as a whole, so if a duration is missing the sum goes to that step
 * undivided. */
static void share_sum(struct range *range, const struct scan_task *task, uint32_t group,
                      const struct block_profile *profiles, int64_t sum)
{
    __int128 all_ns = 0, done_ns = 0;
    bool is_known = true;
    for (uint32_t i = task->first; i < task->end; i++) {
        const int64_t duration_ns = duration_of(range, task, &profiles[i - task->first]);
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
        const int64_t duration_ns = duration_of(range, task, profile);
        done_ns += duration_ns;
        const bool is_last = i + 1 == task->end;
        const int64_t after =
            is_last ? sum : (int64_t)(sum * (done_ns / unit_ns) / (all_ns / unit_ns));
        spread_add(&range->spread, group, profile->time_ns, duration_ns, after - before);
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
            spread_add(&range->spread, group, profile->time_ns, duration_of(range, task, profile),
                       value);
        code = check_work(range);
    }
    if (task->are_totals)
        share_sum(range, task, group, profiles, sum);
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
    enum err_code code = scan_read_profiles(scan, task->block, task->granule, &profiles);
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

enum err_code range_read_times(struct range *range, struct scan_task *task)
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

/* Adds the rows of counters. The key of a row is its group and whether the filter keeps the row:
 * one that is not kept still shows that the group has data. */
static enum err_code add_snapshots(struct range *range, const struct scan_task *task,
                                   const struct block_rows *rows, const bool *kept_stacks)
{
    vec_reserve(range->keys, range->key_capacity, rows->row_count);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        if (row_labels_have_grown(range->labels) && range_check_limits(range))
            return scan_err(range->scan)->code;
        const uint32_t group = group_of_row(range, rows, i);
        range->keys[i] = row_labels_stays(group) ? group * 2 + keeps_row(kept_stacks, rows, i)
                                                 : COUNTER_INCREASE_LEFT_OUT;
    }
    counter_increase_add(&range->increase, task->block, rows, task->first, task->end, range->keys);
    for (uint32_t i = task->first; i < task->end; i++)
        neighbours_note(&range->neighbours, rows->profiles[i].time_ns);
    return ERR_NONE;
}

/* Divides the value equally among its timestamps; those outside the window are left out. */
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

/* The rows of a profile in one group count as one value, as they do without labels.
 * range->values[i] is the sum of profile i in the groups that were added before. */
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

/* Adds the rows of deltas and gauges. Most granules have one group, so the values of the first
 * group need no look-up. Rows of stacks that the filter does not keep count as 0, so that their
 * group has data. */
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
        if (row_labels_have_grown(range->labels))
            code = range_check_limits(range);
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

static enum err_code add_gauges(struct range *range, const struct scan_task *task,
                                const struct block_rows *rows, const bool *kept_stacks)
{
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t ordinal = rows->ordinals[i];
        if (ordinal < task->first || ordinal >= task->end)
            continue;
        if (row_labels_have_grown(range->labels) && range_check_limits(range))
            return scan_err(range->scan)->code;
        const uint32_t group = group_of_row(range, rows, i);
        if (row_labels_stays(group))
            spread_add(&range->spread, group, rows->profiles[ordinal].time_ns, 0,
                       keeps_row(kept_stacks, rows, i) ? rows->values[i] : 0);
        else
            range->has_lost_rows = true;
    }
    cover_profiles(range, task, rows->profiles + task->first);
    return ERR_NONE;
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
    code = scan_read_rows(scan, task, wants_details, &rows);
    if (!wants_labels)
        rows.label_sets = NULL;
    code = scan_note_read(scan, task, granule->row_count,
                          bytes[BLOCK_ROWS] + (wants_details ? bytes[BLOCK_DETAILS] : 0), code);
    if (code || task->is_broken)
        return code;
    if (range->aggregation == STORE_SUM)
        return add_deltas(range, task, &rows, kept_stacks);
    if (range->aggregation == STORE_MEAN)
        return add_gauges(range, task, &rows, kept_stacks);
    return add_snapshots(range, task, &rows, kept_stacks);
}

bool range_is_idle(const struct range *range, const struct scan_task *task)
{
    return range->aggregation != STORE_COUNTER_DELTA && !task->granule->row_count;
}

enum err_code range_read_task(struct range *range, struct scan_task *task)
{
    if (range_is_cut(range, task)) {
        if (!range->is_second_pass)
            scan_note_cut(range->scan, task);
        return ERR_NONE;
    }
    row_labels_begin(range->labels, task->block, task->granule);
    if (range_is_idle(range, task) && range->aggregation == STORE_MEAN)
        return range_read_times(range, task);
    if (range_is_idle(range, task)) {
        range->has_left_out = true;
        return ERR_NONE;
    }
    const bool wants_labels =
        !task->has_totals_only && row_labels_wants_rows(range->labels, task->granule);
    const bool wants_timestamps = !task->has_totals_only && range->query->is_by_timestamps &&
                                  (task->granule->flags & BLOCK_HAS_TIMESTAMPS);
    const bool wants_rows =
        wants_labels || wants_timestamps || range->aggregation == STORE_COUNTER_DELTA;
    if (wants_rows || range->query->filter) {
        enum err_code code = scan_open_stacks(range->scan, task);
        if (code || task->is_broken)
            return code;
    }
    if (wants_rows)
        return read_rows(range, task, wants_labels, wants_timestamps);
    const uint32_t group = row_labels_group(range->labels, 0);
    if (!row_labels_stays(group) && range->aggregation == STORE_MEAN)
        return range_read_times(range, task);
    if (!row_labels_stays(group)) {
        range->has_left_out = true;
        return ERR_NONE;
    }
    return is_one_value(range, task) ? read_whole(range, task, group)
                                     : read_profiles(range, task, group);
}

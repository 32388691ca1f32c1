#include "store/range.h"

#include "lib/base/clock.h"
#include "lib/base/flight_cache.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/label_filter.h"
#include "store/differences.h"
#include "store/moments.h"
#include "store/range_groups.h"
#include "store/row_labels.h"
#include "store/stack_filter.h"
#include "store/walk.h"

#include <inttypes.h>
#include <stdlib.h>

/* What one series has in one step, of rows of one group. */
struct step_sum {
    int64_t sum;
    uint32_t group;
    uint32_t step;
};

/* Which groups the samples of a series are in: one, or one of these. */
#define NO_GROUP UINT32_MAX
#define SEVERAL_GROUPS (UINT32_MAX - 1)

/* Memory for steps of groups that may turn out not to be among the largest: 2,000 groups of 250
 * steps. A query with more groups reads the largest ones a second time. */
enum { CELL_BUDGET_BYTES = 32 << 20 };

struct range {
    struct walk *walk;
    const struct store_range_query *query;
    enum store_rule rule;
    uint32_t step_count;
    struct stack_filters *filters;
    struct stack_filter_question question;
    const bool **keeps; /* per block in use: per stack; NULL: not yet known */
    struct flight_entry **keeps_entries;
    uint32_t keeps_count; /* blocks in use */
    size_t keeps_bytes;
    struct row_labels *labels;
    struct range_groups *groups; /* by the number of the labels */
    uint32_t *groups_of_series;  /* a group's number, NO_GROUP or SEVERAL_GROUPS */
    bool is_second_pass;
    /* Of the series in hand: */
    struct map_u64 sum_numbers; /* by group and step */
    struct step_sum *sums;
    uint32_t sum_count;
    uint32_t sum_capacity;
    uint32_t last_sum;         /* profiles come in order of time */
    uint32_t *snapshot_counts; /* per step */
    struct moments moments;    /* of snapshots that are not counted there yet */
    struct differences differences;
    struct map_u64 cut_hours; /* totals alone, of more than one step */
    /* Of the granule in hand: */
    int64_t *values; /* per profile */
    uint32_t value_capacity;
    uint32_t *keys; /* per row */
    uint32_t key_capacity;
    struct store_range answer;
};

static enum err_code check_limits(const struct range *range)
{
    return walk_check_limits(
        range->walk,
        range_groups_memory(range->groups) + range->keeps_bytes + row_labels_memory(range->labels) +
            range->walk->series_count * sizeof(*range->groups_of_series) +
            range->sum_capacity * (sizeof(*range->sums) + 2 * sizeof(struct map_u64_slot)) +
            range->value_capacity * sizeof(*range->values) +
            range->key_capacity * sizeof(*range->keys) + differences_memory(&range->differences) +
            moments_memory(&range->moments));
}

/* ---- reading ---- */

static uint32_t step_of(const struct range *range, int64_t time_ns)
{
    const struct store_range_query *query = range->query;
    const uint64_t since_ns = (uint64_t)time_ns - (uint64_t)query->query.start_ns;
    return (uint32_t)((since_ns + (uint64_t)query->lead_ns) / (uint64_t)query->step_ns);
}

static void add_value(struct range *range, uint32_t group, uint32_t step, int64_t value)
{
    const struct step_sum *last = &range->sums[range->last_sum];
    uint32_t number = range->last_sum;
    if (number >= range->sum_count || last->group != group || last->step != step) {
        const uint64_t key = (uint64_t)group << 32 | step;
        number = map_u64_add(&range->sum_numbers, key, range->sum_count);
    }
    if (number == range->sum_count) {
        if (range->sum_count == range->sum_capacity) {
            range->sum_capacity = range->sum_capacity ? range->sum_capacity * 2 : 256;
            range->sums = mem_resize(range->sums, range->sum_capacity, sizeof(*range->sums));
        }
        range->sums[range->sum_count++] = (struct step_sum){.group = group, .step = step};
    }
    range->sums[number].sum += value;
    range->last_sum = number;
}

static enum err_code find_keeps(struct range *range, const struct walk_task *task,
                                const bool **ret_keeps)
{
    const bool **keeps = &range->keeps[task->block_index];
    enum err_code code = ERR_NONE;
    if (!*keeps) {
        code = stack_filters_ref(range->filters, &range->question, task->block,
                                 &range->walk->statistics.names,
                                 &range->keeps_entries[task->block_index], keeps, range->walk->err);
        range->keeps_bytes += block_dictionary(task->block)->stacks.stack_count;
    }
    *ret_keeps = *keeps;
    return walk_explain_wait(range->walk, code);
}

/* All profiles of the granule are in one step: what they have together is enough. */
static bool is_in_one_step(const struct range *range, const struct walk_task *task)
{
    return range->rule != STORE_DIFFERENCE && walk_is_whole(task) && !task->has_shared_moments &&
           step_of(range, task->granule->begin_ns) == step_of(range, task->granule->end_ns);
}

/* What is known of an hour as a whole alone is of no step when steps divide it. */
static bool is_cut(const struct range *range, const struct walk_task *task)
{
    int64_t first_ns, last_ns;
    walk_find_hour(task->granule, &first_ns, &last_ns);
    return task->are_totals && step_of(range, first_ns) != step_of(range, last_ns);
}

/* Means are of all snapshots of the series. */
static void note_snapshots(struct range *range, const struct walk_task *task,
                           const struct block_profile *profiles)
{
    if (task->has_shared_moments)
        moments_add(&range->moments, profiles, task->first, task->end);
    for (uint32_t i = task->first; !task->has_shared_moments && i < task->end; i++)
        range->snapshot_counts[step_of(range, profiles[i].time_ns)]++;
}

static void count_moment(void *context, int64_t time_ns)
{
    struct range *range = context;
    range->snapshot_counts[step_of(range, time_ns)]++;
}

static enum err_code read_whole(struct range *range, struct walk_task *task, uint32_t group)
{
    struct walk *walk = range->walk;
    const struct block_granule *granule = task->granule;
    const bool *keeps = NULL;
    struct block_totals totals = {0};
    int64_t value = granule->total;
    enum err_code code = ERR_NONE;
    if (range->query->filter) {
        code = find_keeps(range, task, &keeps);
        if (code)
            return code;
        code = block_read_totals(task->block, granule, walk->cursor, &totals, walk->err);
        value = 0;
    }
    for (uint32_t i = 0; !code && i < totals.count; i++)
        value += keeps[totals.stacks[i]] ? totals.sums[i] : 0;
    if (!code) {
        const uint32_t step = step_of(range, granule->begin_ns);
        add_value(range, group, step, value);
        range->snapshot_counts[step] += granule->profile_count;
    }
    return walk_note_read(walk, task, keeps ? granule->row_count : 0,
                          keeps ? granule->extent_bytes[BLOCK_TOTALS] : 0, code);
}

/* values[i]: what the filter keeps of profile i. */
static enum err_code read_values(struct range *range, const struct walk_task *task)
{
    const struct block_granule *granule = task->granule;
    const bool *keeps;
    struct block_rows rows;
    enum err_code code = find_keeps(range, task, &keeps);
    if (!code)
        code = block_read_rows(task->block, granule, range->walk->cursor, false, &rows,
                               range->walk->err);
    if (code)
        return code;
    if (range->value_capacity < granule->profile_count) {
        range->value_capacity = granule->profile_count;
        range->values = mem_resize(range->values, range->value_capacity, sizeof(*range->values));
    }
    memset(range->values, 0, granule->profile_count * sizeof(*range->values));
    for (uint32_t i = 0; i < rows.row_count; i++)
        range->values[rows.ordinals[i]] += keeps[rows.stacks[i]] ? rows.values[i] : 0;
    return ERR_NONE;
}

static enum err_code read_profiles(struct range *range, struct walk_task *task, uint32_t group)
{
    struct walk *walk = range->walk;
    const struct block_granule *granule = task->granule;
    const bool has_filter = range->query->filter != NULL;
    const struct block_profile *profiles;
    enum err_code code = has_filter ? read_values(range, task) : ERR_NONE;
    if (!code)
        code = block_read_profiles(task->block, granule, walk->cursor, &profiles, walk->err);
    for (uint32_t i = task->first; !code && i < task->end; i++) {
        const uint32_t step = step_of(range, profiles[i].time_ns);
        add_value(range, group, step, has_filter ? range->values[i] : profiles[i].total);
    }
    if (!code)
        note_snapshots(range, task, profiles);
    return walk_note_read(walk, task, has_filter ? granule->row_count : 0,
                          granule->extent_bytes[BLOCK_PROFILES] +
                              (has_filter ? granule->extent_bytes[BLOCK_ROWS] : 0),
                          code);
}

/* The labels of none of its rows are wanted. */
static enum err_code count_snapshots(struct range *range, struct walk_task *task)
{
    struct walk *walk = range->walk;
    const struct block_granule *granule = task->granule;
    const struct block_profile *profiles;
    if (is_in_one_step(range, task)) {
        range->snapshot_counts[step_of(range, granule->begin_ns)] += granule->profile_count;
        return ERR_NONE;
    }
    enum err_code code =
        block_read_profiles(task->block, granule, walk->cursor, &profiles, walk->err);
    if (!code)
        note_snapshots(range, task, profiles);
    return walk_note_read(walk, task, 0, granule->extent_bytes[BLOCK_PROFILES], code);
}

/* ---- row by row ---- */

static bool keeps_row(const bool *keeps, const struct block_rows *rows, uint32_t row)
{
    return !keeps || keeps[rows->stacks[row]];
}

static uint32_t group_of_row(struct range *range, const struct block_rows *rows, uint32_t row)
{
    return row_labels_group(range->labels, rows->label_sets ? rows->label_sets[row] : 0);
}

/* A row's key is its group and whether the filter keeps it: what it does not keep still tells that
 * the group is there. */
static void add_snapshots(struct range *range, const struct walk_task *task,
                          const struct block_rows *rows, const bool *keeps)
{
    if (rows->row_count > range->key_capacity) {
        range->key_capacity = rows->row_count;
        range->keys = mem_resize(range->keys, range->key_capacity, sizeof(*range->keys));
    }
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t group = group_of_row(range, rows, i);
        range->keys[i] = group == ROW_LABELS_LEFT_OUT ? DIFFERENCES_LEFT_OUT
                                                      : group * 2 + keeps_row(keeps, rows, i);
    }
    differences_add(&range->differences, task->block, rows, task->first, task->end, range->keys);
}

/* In equal parts that add up to the value. */
static void add_moments(struct range *range, uint32_t group, int64_t value, const int64_t *moments,
                        uint32_t count)
{
    const struct store_query *query = &range->query->query;
    for (uint32_t i = 0; i < count; i++) {
        const __int128 before = (__int128)value * i / count;
        const __int128 after = (__int128)value * (i + 1) / count;
        if (moments[i] >= query->start_ns && moments[i] < query->end_ns)
            add_value(range, group, step_of(range, moments[i]), (int64_t)(after - before));
    }
}

static void add_rows(struct range *range, const struct walk_task *task,
                     const struct block_rows *rows, const bool *keeps)
{
    const int64_t *next = rows->timestamps;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        const uint32_t ordinal = rows->ordinals[i];
        const uint32_t moment_count = rows->timestamp_counts ? rows->timestamp_counts[i] : 0;
        const int64_t *moments = next;
        next = moment_count ? next + moment_count : next;
        if (ordinal < task->first || ordinal >= task->end)
            continue;
        const uint32_t group = group_of_row(range, rows, i);
        const int64_t value = keeps_row(keeps, rows, i) ? rows->values[i] : 0;
        if (group == ROW_LABELS_LEFT_OUT)
            continue;
        if (moment_count && range->query->is_by_moments)
            add_moments(range, group, value, moments, moment_count);
        else
            add_value(range, group, step_of(range, rows->profiles[ordinal].time_ns), value);
    }
    note_snapshots(range, task, rows->profiles);
}

static enum err_code read_rows(struct range *range, struct walk_task *task, bool wants_labels,
                               bool wants_moments)
{
    struct walk *walk = range->walk;
    const struct block_granule *granule = task->granule;
    const uint32_t *bytes = granule->extent_bytes;
    const bool *keeps = NULL;
    struct block_rows rows;
    enum err_code code = range->query->filter ? find_keeps(range, task, &keeps) : ERR_NONE;
    if (code)
        return code;
    const bool wants_details = wants_labels || wants_moments;
    code = block_read_rows(task->block, granule, walk->cursor, wants_details, &rows, walk->err);
    if (!wants_labels)
        rows.label_sets = NULL;
    if (!code && range->rule == STORE_DIFFERENCE)
        add_snapshots(range, task, &rows, keeps);
    else if (!code)
        add_rows(range, task, &rows, keeps);
    return walk_note_read(walk, task, granule->row_count,
                          bytes[BLOCK_ROWS] + (wants_details ? bytes[BLOCK_DETAILS] : 0), code);
}

static enum err_code read_task(struct range *range, struct walk_task *task)
{
    if (is_cut(range, task)) {
        if (!range->is_second_pass)
            walk_note_cut(range->walk, task);
        if (range->rule != STORE_DIFFERENCE)
            return ERR_NONE;
        map_u64_add(&range->cut_hours, (uint32_t)task->granule->hour, 0);
    }
    row_labels_begin(range->labels, task->block, task->granule);
    const bool wants_labels =
        !task->are_totals && row_labels_wants_rows(range->labels, task->granule);
    const bool wants_moments = !task->are_totals && range->query->is_by_moments &&
                               (task->granule->flags & BLOCK_HAS_TIMESTAMPS);
    const bool wants_rows = wants_labels || wants_moments || range->rule == STORE_DIFFERENCE;
    if (wants_rows || range->query->filter) {
        enum err_code code = walk_open_stacks(range->walk, task);
        if (code || task->is_broken)
            return code;
    }
    if (wants_rows)
        return read_rows(range, task, wants_labels, wants_moments);
    const uint32_t group = row_labels_group(range->labels, 0);
    if (group == ROW_LABELS_LEFT_OUT)
        return range->rule == STORE_MEAN ? count_snapshots(range, task) : ERR_NONE;
    return is_in_one_step(range, task) ? read_whole(range, task, group)
                                       : read_profiles(range, task, group);
}

/* ---- series by series ---- */

static uint32_t hour_of(int64_t time_ns)
{
    const int64_t hour_ns = 3600 * CLOCK_NS_PER_S;
    return (uint32_t)(time_ns / hour_ns - (time_ns % hour_ns < 0));
}

/* Snapshots of an hour that is left out tell what later ones are to be compared with. */
static void add_gain(void *context, uint32_t key, int64_t time_ns, int64_t value)
{
    struct range *range = context;
    if (map_u64_find(&range->cut_hours, hour_of(time_ns)) != MAP_ABSENT)
        return;
    add_value(range, key / 2, step_of(range, time_ns), key % 2 ? value : 0);
}

static void add_to_groups(struct range *range, uint32_t series)
{
    uint32_t *groups = &range->groups_of_series[series];
    for (uint32_t i = 0; i < range->sum_count; i++) {
        const struct step_sum *sum = &range->sums[i];
        range_groups_add(range->groups, sum->group, sum->step, sum->sum,
                         range->rule == STORE_MEAN ? range->snapshot_counts[sum->step] : 1);
        *groups = *groups == NO_GROUP || *groups == sum->group ? sum->group : SEVERAL_GROUPS;
    }
}

static void begin_series(struct range *range)
{
    map_u64_fini(&range->sum_numbers);
    range->sum_numbers = (struct map_u64){0};
    range->sum_count = range->last_sum = 0;
    map_u64_fini(&range->cut_hours);
    range->cut_hours = (struct map_u64){0};
    memset(range->snapshot_counts, 0, range->step_count * sizeof(*range->snapshot_counts));
}

static enum err_code read_series(struct range *range, struct walk_task *tasks, uint32_t begin,
                                 uint32_t end)
{
    enum err_code code = ERR_NONE;
    begin_series(range);
    for (uint32_t i = begin; i < end && !code; i++) {
        if (tasks[i].is_broken)
            continue;
        if (range->query->filter)
            walk_read_ahead(range->walk, i);
        code = read_task(range, &tasks[i]);
        if (!code)
            code = check_limits(range);
    }
    if (!code)
        differences_tell(&range->differences, add_gain, range);
    differences_fini(&range->differences);
    moments_tell(&range->moments, count_moment, range);
    if (!code)
        add_to_groups(range, tasks[begin].series);
    return code;
}

static bool is_needed(const struct range *range, uint32_t series)
{
    const uint32_t group = range->groups_of_series[series];
    return !range->is_second_pass || group == SEVERAL_GROUPS ||
           range_groups_wants(range->groups, group);
}

static enum err_code read_pass(struct range *range)
{
    const struct walk *walk = range->walk;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0, end; i < walk->task_count && !code; i = end) {
        const uint32_t series = walk->tasks[i].series;
        for (end = i; end < walk->task_count && walk->tasks[end].series == series;)
            end++;
        if (is_needed(range, series))
            code = read_series(range, walk->tasks, i, end);
    }
    return code ? code : check_limits(range);
}

static struct span find_text(const struct range *range, uint32_t number, struct span name)
{
    uint32_t count;
    const struct label_words *words = row_labels_get(range->labels, number, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (span_equal(words[i].key, name))
            return words[i].text;
    }
    return (struct span){0};
}

static int compare_groups(void *context, uint32_t one, uint32_t other)
{
    const struct range *range = context;
    int order = 0;
    for (size_t i = 0; !order && i < range->query->group_by_count; i++) {
        const struct span name = range->query->group_by[i];
        order = span_compare(find_text(range, one, name), find_text(range, other, name));
    }
    return order;
}

static enum err_code read_all(struct range *range)
{
    walk_sort_by_series(range->walk);
    if (range->rule == STORE_MEAN)
        moments_find_shared(range->walk);
    enum err_code code = read_pass(range);
    if (code || !range_groups_choose(range->groups, compare_groups, range))
        return code;
    range->is_second_pass = true;
    return read_pass(range);
}

/* ---- the answer ---- */

/* Of a group, or of all that are not chosen. */
static void make_points(const struct range *range, bool is_rest, uint32_t group,
                        struct store_range_series *ret_series)
{
    struct store_point *points =
        arena_new_raw(range->walk->arena, struct store_point, range->step_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < range->step_count; i++) {
        struct store_point *point = &points[count];
        point->step = i;
        count += is_rest ? range_groups_rest(range->groups, i, &point->value)
                         : range_groups_value(range->groups, group, i, &point->value);
    }
    ret_series->points = points;
    ret_series->point_count = count;
}

static void make_labels(const struct range *range, uint32_t group,
                        struct store_range_series *ret_series)
{
    const struct store_range_query *query = range->query;
    struct store_label *labels =
        arena_new(range->walk->arena, struct store_label, query->group_by_count);
    for (size_t i = 0; i < query->group_by_count; i++)
        labels[i] = (struct store_label){.name = query->group_by[i],
                                         .value = find_text(range, group, query->group_by[i])};
    ret_series->labels = labels;
}

static void make_answer(struct range *range)
{
    struct walk *walk = range->walk;
    const uint32_t *chosen;
    const uint32_t count = range_groups_chosen(range->groups, &chosen);
    const uint32_t other_count = range_groups_count(range->groups) - count;
    struct store_type *type =
        walk->type_count ? arena_new(walk->arena, struct store_type, 1) : NULL;
    if (type)
        *type = walk->types[0];
    struct store_range_series *series = arena_new(walk->arena, struct store_range_series, count);
    for (uint32_t i = 0; i < count; i++) {
        make_labels(range, chosen[i], &series[i]);
        make_points(range, false, chosen[i], &series[i]);
    }
    struct store_range_series *other =
        other_count ? arena_new(walk->arena, struct store_range_series, 1) : NULL;
    if (other)
        make_points(range, true, 0, other);
    range->answer = (struct store_range){.type = type,
                                         .series = series,
                                         .series_count = count,
                                         .other = other,
                                         .other_count = other_count,
                                         .statistics = walk->statistics};
}

static void range_fini(struct range *range)
{
    for (uint32_t i = 0; i < range->keeps_count; i++)
        flight_cache_unref(range->keeps_entries[i]);
    range->keeps_count = 0;
    row_labels_destroy(range->labels);
    range->labels = NULL;
    range_groups_destroy(range->groups);
    range->groups = NULL;
    map_u64_fini(&range->sum_numbers);
    range->sum_numbers = (struct map_u64){0};
    map_u64_fini(&range->cut_hours);
    range->cut_hours = (struct map_u64){0};
    differences_fini(&range->differences);
    moments_fini(&range->moments);
}

static enum err_code answer_range(struct walk *walk, void *context)
{
    struct range *range = context;
    enum err_code code = walk_check_types(walk);
    if (!code)
        code = walk_check_magnitude(walk);
    if (code)
        return code;
    walk_count_unlabelled(walk, range->query->group_by, range->query->group_by_count);
    range->walk = walk;
    range->rule = walk->type_count ? walk->types[0].rule : STORE_SUM;
    if (range->query->is_by_moments && range->rule != STORE_SUM)
        return err_set(walk->err, ERR_INVALID,
                       "moments: %s is no delta: what it tells is of its profiles' begins",
                       walk->types[0].name);
    if (range->query->is_rate && range->rule == STORE_MEAN)
        return err_set(walk->err, ERR_INVALID, "rate: %s is a level, which has none",
                       walk->types[0].name);
    range_fini(range); /* of another try */
    range->keeps = arena_new(walk->arena, const bool *, walk->block_count);
    range->keeps_entries = arena_new(walk->arena, struct flight_entry *, walk->block_count);
    range->keeps_count = walk->block_count;
    range->keeps_bytes = 0;
    range->snapshot_counts = arena_new(walk->arena, uint32_t, range->step_count);
    range->groups =
        range_groups_create(range->step_count, range->query->max_series, CELL_BUDGET_BYTES);
    range->groups_of_series = arena_new_raw(walk->arena, uint32_t, walk->series_count);
    memset(range->groups_of_series, 0xff, walk->series_count * sizeof(*range->groups_of_series));
    range->is_second_pass = false;
    range->labels =
        row_labels_create(walk->arena, range->query->query.label_filter, range->query->group_by,
                          range->query->group_by_count, ROW_LABELS_TEXTS);
    code = read_all(range);
    if (!code)
        make_answer(range);
    return code;
}

enum err_code range_make(const struct walk_source *source, struct arena *arena,
                         const struct store_range_query *query, struct store_range *ret_range,
                         struct err *err)
{
    const uint64_t steps_ns =
        (uint64_t)query->query.end_ns - (uint64_t)query->query.start_ns + (uint64_t)query->lead_ns;
    const uint64_t step_ns = (uint64_t)query->step_ns;
    const uint64_t step_count = steps_ns / step_ns + (steps_ns % step_ns != 0);
    if (step_count > STORE_RANGE_STEPS_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "step: the window has more than %d of them; make steps longer",
                       STORE_RANGE_STEPS_MAX);
    struct range range = {
        .query = query,
        .step_count = (uint32_t)step_count,
        .filters = source->filters,
        .question = {.filter = query->filter,
                     .resolver = source->resolver,
                     .tenant_id = query->query.tenant_id,
                     .patience = &query->query.patience},
    };
    if (query->filter)
        range.question.rules = stack_filter_tell(arena, query->filter);
    enum err_code code =
        walk_run(source, &query->query, WALK_TASKS, arena, answer_range, &range, err);
    range_fini(&range);
    mem_free(range.sums);
    mem_free(range.values);
    mem_free(range.keys);
    if (!code && !range.answer.type && !range.answer.statistics.broken_count)
        code = walk_explain_nothing(source, &query->query, arena, err);
    if (!code)
        *ret_range = range.answer;
    return code;
}

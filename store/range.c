#include "store/range.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "store/mean.h"
#include "store/stack_filter.h"
#include "store/walk.h"

#include <inttypes.h>
#include <stdlib.h>

enum { KEY_MAX_BYTES = 1 << 20 };

/* What one series has in one step. */
struct step_sum {
    int64_t sum;
    uint32_t count; /* of profiles, or of differences; 0: nothing */
};

struct snapshot {
    int64_t time_ns;
    int64_t total; /* of all its stacks */
    int64_t value; /* of those that the filter keeps */
};

struct cell {
    struct mean value;
    bool is_there;
};

struct group {
    struct store_label *labels;
    size_t label_count;
    struct cell *cells; /* per step */
};

struct range {
    struct walk *walk;
    const struct store_range_query *query;
    enum store_rule rule;
    uint32_t step_count;
    const bool **keeps; /* per block in use: per stack; NULL: not yet known */
    size_t keeps_bytes;
    struct map_bytes group_numbers; /* by values of the labels */
    struct group *groups;           /* room for max_series */
    struct step_sum *sums;          /* of the series in hand */
    struct snapshot *snapshots;     /* of the series in hand */
    uint32_t snapshot_count;
    uint32_t snapshot_capacity;
    int64_t *values; /* per profile of the granule in hand */
    uint32_t value_capacity;
    struct store_range answer;
};

static enum err_code check_limits(const struct range *range)
{
    const size_t group_bytes = range->step_count * sizeof(struct cell);
    return walk_check_limits(range->walk, range->group_numbers.count * group_bytes +
                                              range->keeps_bytes +
                                              range->step_count * sizeof(*range->sums) +
                                              range->snapshot_capacity * sizeof(*range->snapshots) +
                                              range->value_capacity * sizeof(*range->values));
}

/* ---- groups ---- */

static struct span find_label(const struct store_series *series, struct span name)
{
    for (uint32_t i = 0; i < series->label_count; i++) {
        if (span_equal(series->labels[i].name, name))
            return series->labels[i].value;
    }
    return (struct span){0};
}

/* The group's key is sizes and bytes of its labels' values. */
static enum err_code find_group(struct range *range, const struct store_series *series,
                                struct group **ret_group)
{
    const struct store_range_query *query = range->query;
    struct arena *arena = range->walk->arena;
    buf_auto key;
    buf_init(&key, KEY_MAX_BYTES);
    for (size_t i = 0; i < query->group_by_count; i++) {
        const struct span value = find_label(series, query->group_by[i]);
        buf_append_u32(&key, (uint32_t)value.size);
        buf_append_span(&key, value);
    }
    uint32_t number = map_bytes_find(&range->group_numbers, buf_span(&key));
    if (number != MAP_ABSENT) {
        *ret_group = &range->groups[number];
        return ERR_NONE;
    }
    number = range->group_numbers.count;
    if (number == query->max_series)
        return err_set(range->walk->err, ERR_TOO_LARGE,
                       "group_by: there are more than %" PRIu32
                       " series: raise limit, group by other labels, or ask for fewer",
                       query->max_series);
    map_bytes_add(&range->group_numbers,
                  span_of(arena_strndup(arena, key.data, key.size), key.size), number);
    struct group *group = &range->groups[number];
    group->labels = arena_new(arena, struct store_label, query->group_by_count);
    group->label_count = query->group_by_count;
    for (size_t i = 0; i < query->group_by_count; i++)
        group->labels[i] = (struct store_label){.name = query->group_by[i],
                                                .value = find_label(series, query->group_by[i])};
    group->cells = arena_new(arena, struct cell, range->step_count);
    *ret_group = group;
    return check_limits(range);
}

/* ---- reading ---- */

static uint32_t step_of(const struct range *range, int64_t time_ns)
{
    return (uint32_t)((time_ns - range->query->query.start_ns) / range->query->step_ns);
}

static void add_value(struct range *range, int64_t time_ns, int64_t value, uint32_t count)
{
    struct step_sum *sum = &range->sums[step_of(range, time_ns)];
    sum->sum += value;
    sum->count += count;
}

static void add_profile(struct range *range, const struct block_profile *profile, int64_t value)
{
    if (range->rule != STORE_DIFFERENCE) {
        add_value(range, profile->time_ns, value, 1);
        return;
    }
    if (range->snapshot_count == range->snapshot_capacity) {
        range->snapshot_capacity = range->snapshot_capacity ? range->snapshot_capacity * 2 : 256;
        range->snapshots =
            mem_resize(range->snapshots, range->snapshot_capacity, sizeof(*range->snapshots));
    }
    range->snapshots[range->snapshot_count++] =
        (struct snapshot){.time_ns = profile->time_ns, .total = profile->total, .value = value};
}

static enum err_code find_keeps(struct range *range, const struct walk_task *task,
                                const bool **ret_keeps)
{
    const struct dictionary *dictionary = block_dictionary(task->block);
    const bool **keeps = &range->keeps[task->block_index];
    enum err_code code = ERR_NONE;
    if (!*keeps) {
        code = stack_filter_apply(range->query->filter, dictionary, range->walk->arena, keeps,
                                  range->walk->err);
        range->keeps_bytes += dictionary->stacks.stack_count;
    }
    *ret_keeps = *keeps;
    return code;
}

/* All profiles of the granule are in one step: what they have together is enough. */
static bool is_in_one_step(const struct range *range, const struct walk_task *task)
{
    return range->rule != STORE_DIFFERENCE && walk_is_whole(task) &&
           step_of(range, task->granule->begin_ns) == step_of(range, task->granule->end_ns);
}

static enum err_code read_whole(struct range *range, struct walk_task *task)
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
    if (!code)
        add_value(range, granule->begin_ns, value, granule->profile_count);
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

static enum err_code read_profiles(struct range *range, struct walk_task *task)
{
    struct walk *walk = range->walk;
    const struct block_granule *granule = task->granule;
    const bool has_filter = range->query->filter != NULL;
    const struct block_profile *profiles;
    enum err_code code = has_filter ? read_values(range, task) : ERR_NONE;
    if (!code)
        code = block_read_profiles(task->block, granule, walk->cursor, &profiles, walk->err);
    for (uint32_t i = task->first; !code && i < task->end; i++)
        add_profile(range, &profiles[i], has_filter ? range->values[i] : profiles[i].total);
    return walk_note_read(walk, task, has_filter ? granule->row_count : 0,
                          granule->extent_bytes[BLOCK_PROFILES] +
                              (has_filter ? granule->extent_bytes[BLOCK_ROWS] : 0),
                          code);
}

/* ---- series by series ---- */

static int compare_snapshots(const void *a, const void *b)
{
    const struct snapshot *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->total > y->total) - (x->total < y->total);
}

static void add_differences(struct range *range)
{
    struct snapshot *snapshots = range->snapshots;
    if (range->snapshot_count)
        qsort(snapshots, range->snapshot_count, sizeof(*snapshots), compare_snapshots);
    for (uint32_t i = 1; i < range->snapshot_count; i++) {
        const struct snapshot *before = &snapshots[i - 1], *after = &snapshots[i];
        const bool began = after->total < before->total;
        add_value(range, after->time_ns, after->value - (began ? 0 : before->value), 1);
    }
    range->snapshot_count = 0;
}

static void add_to_group(struct range *range, struct group *group)
{
    for (uint32_t i = 0; i < range->step_count; i++) {
        const struct step_sum *sum = &range->sums[i];
        struct cell *cell = &group->cells[i];
        if (!sum->count)
            continue;
        if (!cell->is_there)
            *cell = (struct cell){.value = mean_zero(), .is_there = true};
        mean_add(&cell->value, sum->sum, range->rule == STORE_MEAN ? sum->count : 1);
    }
    memset(range->sums, 0, range->step_count * sizeof(*range->sums));
}

static enum err_code read_all(struct range *range)
{
    struct walk *walk = range->walk;
    enum err_code code = ERR_NONE;
    walk_sort_by_series(walk);
    for (uint32_t i = 0; i < walk->task_count && !code;) {
        const uint32_t series = walk->tasks[i].series;
        for (; i < walk->task_count && !code && walk->tasks[i].series == series; i++)
            code = is_in_one_step(range, &walk->tasks[i]) ? read_whole(range, &walk->tasks[i])
                                                          : read_profiles(range, &walk->tasks[i]);
        if (range->rule == STORE_DIFFERENCE)
            add_differences(range);
        struct group *group = NULL;
        if (!code)
            code = check_limits(range);
        if (!code)
            code = find_group(range, &walk->series[series], &group);
        if (!code)
            add_to_group(range, group);
    }
    return code;
}

/* ---- the answer ---- */

static void make_points(const struct range *range, const struct group *group,
                        struct store_range_series *ret_series)
{
    struct store_point *points =
        arena_new_raw(range->walk->arena, struct store_point, range->step_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < range->step_count; i++) {
        if (group->cells[i].is_there)
            points[count++] =
                (struct store_point){.step = i, .value = mean_round(&group->cells[i].value)};
    }
    *ret_series = (struct store_range_series){
        .labels = group->labels, .points = points, .point_count = count};
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int order = 0;
    for (size_t i = 0; !order && i < x->label_count; i++)
        order = span_compare(x->labels[i].value, y->labels[i].value);
    return order;
}

static void make_answer(struct range *range)
{
    struct walk *walk = range->walk;
    struct store_type *type =
        walk->type_count ? arena_new(walk->arena, struct store_type, 1) : NULL;
    if (type)
        *type = walk->types[0];
    const uint32_t count = range->group_numbers.count;
    struct store_range_series *series = arena_new(walk->arena, struct store_range_series, count);
    if (count > 1)
        qsort(range->groups, count, sizeof(*range->groups), compare_groups);
    for (uint32_t i = 0; i < count; i++)
        make_points(range, &range->groups[i], &series[i]);
    range->answer = (struct store_range){
        .type = type, .series = series, .series_count = count, .statistics = walk->statistics};
}

static enum err_code answer_range(struct walk *walk, void *context)
{
    struct range *range = context;
    enum err_code code = walk_check_types(walk);
    if (!code)
        code = walk_check_magnitude(walk);
    if (code)
        return code;
    range->walk = walk;
    range->rule = walk->type_count ? walk->types[0].rule : STORE_SUM;
    range->keeps = arena_new(walk->arena, const bool *, walk->block_count);
    range->groups = arena_new(walk->arena, struct group, range->query->max_series);
    range->sums = arena_new(walk->arena, struct step_sum, range->step_count);
    range->keeps_bytes = 0;
    range->snapshot_count = 0;
    map_bytes_fini(&range->group_numbers); /* of another try */
    range->group_numbers = (struct map_bytes){0};
    code = read_all(range);
    if (!code)
        make_answer(range);
    return code;
}

enum err_code range_make(const struct walk_source *source, struct arena *arena,
                         const struct store_range_query *query, struct store_range *ret_range,
                         struct err *err)
{
    const int64_t window_ns = query->query.end_ns - query->query.start_ns;
    if (window_ns / query->step_ns >= STORE_RANGE_STEPS_MAX)
        return err_set(err, ERR_TOO_LARGE,
                       "step: the window has more than %d of them; make steps longer",
                       STORE_RANGE_STEPS_MAX);
    struct range range = {
        .query = query,
        .step_count = (uint32_t)((window_ns + query->step_ns - 1) / query->step_ns),
    };
    enum err_code code =
        walk_run(source, &query->query, WALK_TASKS, arena, answer_range, &range, err);
    map_bytes_fini(&range.group_numbers);
    mem_free(range.snapshots);
    mem_free(range.values);
    if (!code)
        *ret_range = range.answer;
    return code;
}

/* Merges deltas, and single profiles of any type: values are summed, from totals where possible. */
#include "store/query/merge_internal.h"

#include "lib/base/arena.h"
#include "store/query/partial_sums.h"

static enum err_code add_parts(struct merge *merge, const struct scan_task *task);

/* Records that a task was read, or falls back from series totals to the granules. */
static enum err_code record_read(struct merge *merge, struct scan_task *task, uint64_t bytes,
                                 enum err_code code)
{
    if (code && task->parts) /* the granules' own totals may be intact */
        return add_parts(merge, task);
    return merge_note_read(merge, task, bytes, code);
}

/* No row of the task is in the result: its sum is known without reading rows. */
static enum err_code add_left_out(struct merge *merge, struct scan_task *task, uint32_t group)
{
    struct scan *scan = merge->scan;
    const struct block_granule *granule = task->granule;
    const uint32_t number = merge_number_row(merge, task, 0, group);
    int64_t *sum = stack_union_sum(merge->stacks, number);
    const struct block_profile *profiles;
    if (task->is_broken)
        return ERR_NONE;
    if (scan_is_whole(task)) {
        *sum += granule->total;
        return ERR_NONE;
    }
    enum err_code code = scan_read_profiles(scan, task->block, granule, &profiles);
    for (uint32_t i = task->first; !code && i < task->end; i++)
        *sum += profiles[i].total;
    return scan_note_read(scan, task, 0, granule->extent_bytes[BLOCK_PROFILES], code);
}

/* For a single profile of a counter, sums may overflow; otherwise scan_check_magnitude excludes it.
 */
static enum err_code add_rows(struct merge *merge, struct scan_task *task)
{
    enum { CHECK_ROWS = 1 << 16 };
    struct block_rows rows;
    uint64_t bytes;
    int64_t left_out = 0;
    bool overflows = false;
    if (task->is_broken)
        return ERR_NONE;
    enum err_code code = merge_read_rows(merge, task, true, &rows, &bytes);
    const bool is_read = !code;
    code = record_read(merge, task, bytes, code);
    for (uint32_t i = 0; is_read && !code && i < rows.row_count; i++) {
        if (i % CHECK_ROWS == 0 || row_labels_have_grown(merge->labels))
            code = merge_check_limits(merge, 0);
        if (rows.ordinals[i] < task->first || rows.ordinals[i] >= task->end)
            continue;
        const uint32_t group =
            row_labels_group(merge->labels, rows.label_sets ? rows.label_sets[i] : 0);
        if (!row_labels_stays(group)) {
            if (group == ROW_LABELS_LEFT_OUT)
                overflows |= __builtin_add_overflow(left_out, rows.values[i], &left_out);
            continue;
        }
        int64_t *sum = stack_union_sum(
            merge->stacks, stack_union_number(merge->stacks, task->block, rows.stacks[i], group));
        overflows |= __builtin_add_overflow(*sum, rows.values[i], sum);
    }
    if (left_out) {
        int64_t *sum =
            stack_union_sum(merge->stacks, merge_number_row(merge, task, 0, ROW_LABELS_LEFT_OUT));
        overflows |= __builtin_add_overflow(*sum, left_out, sum);
    }
    return overflows && !code ? scan_refuse_sum(merge->scan) : code;
}

/* Adds each entry to the union by itself: the cost does not depend on the size of the block. */
static enum err_code add_entries(struct merge *merge, struct scan_task *task, uint32_t group)
{
    struct scan *scan = merge->scan;
    const struct block_granule *granule = task->granule;
    struct block_totals totals;
    if (task->is_broken)
        return ERR_NONE;
    enum err_code code = scan_read_totals(scan, task, &totals);
    for (uint32_t i = 0; !code && i < totals.count; i++) {
        if (totals.sums[i])
            *stack_union_sum(merge->stacks, merge_number_row(merge, task, totals.stacks[i],
                                                             group)) += totals.sums[i];
    }
    return record_read(merge, task, granule->extent_bytes[BLOCK_TOTALS], code);
}

/* Adds the granules in place of series totals that cannot be read. */
static enum err_code add_parts(struct merge *merge, const struct scan_task *task)
{
    enum err_code code = ERR_NONE;
    row_labels_begin(merge->labels, task->block, task->granule);
    const uint32_t group = row_labels_group(merge->labels, 0);
    for (uint32_t i = 0; i < task->part_count && !code; i++)
        code = add_entries(merge, &task->parts[i], group);
    return code;
}

/*
 * Sums are collected in an array with one number per stack of the block before they go to the
 * union, so that hashes are looked up once per stack and not once per granule. Clearing and reading
 * the array takes time in proportion to the number of stacks in the block. A granule with few
 * entries therefore does not start an array: the next granule may be of another group, for example
 * if each series is a group.
 */
struct partials_key {
    const struct block *block;
    uint32_t group;
};

struct adding {
    struct merge *merge;
    struct partials_key last;         /* of the previous granule */
    struct partial_sums *partials;    /* NULL: none is started */
    struct partials_key partials_key; /* of partials */
};

static bool is_same(const struct partials_key *a, const struct partials_key *b)
{
    return a->block == b->block && a->group == b->group;
}

static enum err_code record_added(void *context, struct scan_task *task, enum err_code code)
{
    const uint32_t *bytes = task->granule->extent_bytes;
    return record_read(context, task,
                       bytes[BLOCK_TOTALS] + (scan_is_whole(task) ? 0 : bytes[BLOCK_ROWS]), code);
}

static enum err_code compute_partials(struct adding *adding)
{
    struct merge *merge = adding->merge;
    enum err_code code = merge_check_limits(merge, partial_sums_memory(adding->partials));
    return code ? code : partial_sums_compute(adding->partials, merge->scan, record_added, merge);
}

static enum err_code flush_partials(struct adding *adding)
{
    struct merge *merge = adding->merge;
    if (!adding->partials)
        return ERR_NONE;
    enum err_code code = compute_partials(adding);
    if (code)
        return code;
    stack_union_add(merge->stacks, adding->partials_key.block, partial_sums_sums(adding->partials),
                    adding->partials_key.group);
    partial_sums_destroy(adding->partials);
    adding->partials = NULL;
    return merge_check_limits(merge, 0);
}

/* True for the first granule of its key (block and group) when it is small compared with its block:
 * it may be the only one, which is not worth an array. */
static bool is_alone(struct adding *adding, const struct scan_task *task,
                     const struct partials_key *partials_key)
{
    enum { LITTLE = 16 };
    const bool is_first = !is_same(&adding->last, partials_key);
    adding->last = *partials_key;
    return is_first && scan_is_whole(task) &&
           task->granule->entry_count < block_dictionary(task->block)->stacks.stack_count / LITTLE;
}

static enum err_code add_to_partials(struct adding *adding, struct scan_task *task, uint32_t group)
{
    struct merge *merge = adding->merge;
    const struct partials_key partials_key = {.block = task->block, .group = group};
    enum err_code code = ERR_NONE;
    if (task->is_broken)
        return ERR_NONE;
    if (is_alone(adding, task, &partials_key)) {
        code = add_entries(merge, task, group);
        return code ? code : merge_check_limits(merge, 0);
    }
    if (!is_same(&adding->partials_key, &partials_key))
        code = flush_partials(adding);
    if (code)
        return code;
    if (!adding->partials)
        adding->partials = partial_sums_create(task->block);
    adding->partials_key = partials_key;
    return partial_sums_add_task(adding->partials, task) ? compute_partials(adding) : ERR_NONE;
}

/* Counts the tasks from `at` on that series totals can replace: all granules of the series in its
 * block, all whole, none of which needs rows. 0: they cannot be used. */
static uint32_t count_parts(const struct merge *merge, uint32_t at,
                            const struct block_granule **ret_totals)
{
    uint32_t task_count;
    const struct scan_task *tasks = scan_tasks(merge->scan, &task_count);
    const struct scan_task *first = &tasks[at];
    const struct block_granule *totals = block_series_totals(first->block, first->granule->series);
    uint64_t profile_count = 0;
    uint32_t end = at;
    if (!totals)
        return 0;
    row_labels_begin(merge->labels, first->block, totals);
    if (row_labels_wants_rows(merge->labels, totals))
        return 0;
    for (; end < task_count; end++) {
        const struct scan_task *task = &tasks[end];
        if (task->block != first->block || task->granule->series != totals->series)
            break;
        if (task->is_broken || !scan_is_whole(task))
            return 0;
        profile_count += task->granule->profile_count;
    }
    *ret_totals = totals;
    return profile_count == totals->profile_count ? end - at : 0;
}

static struct scan_task *make_series_task(struct arena *arena, struct scan_task *parts,
                                          uint32_t count, const struct block_granule *totals)
{
    struct scan_task *task = arena_new(arena, struct scan_task, 1);
    *task = parts[0];
    task->granule = totals;
    task->first = 0;
    task->end = totals->profile_count;
    task->parts = parts;
    task->part_count = count;
    return task;
}

/* Lists the tasks as they are summed, with series totals where possible; returns their number. */
static uint32_t join_tasks(const struct merge *merge, struct scan_task **joined)
{
    struct arena *arena = scan_arena(merge->scan);
    uint32_t count = 0, task_count;
    struct scan_task *tasks = scan_tasks(merge->scan, &task_count);
    for (uint32_t i = 0; i < task_count;) {
        struct scan_task *task = &tasks[i];
        const struct block_granule *totals = NULL;
        const bool is_first = i == 0 || task->block != task[-1].block ||
                              task->granule->series != task[-1].granule->series;
        const uint32_t part_count = is_first ? count_parts(merge, i, &totals) : 0;
        joined[count++] = part_count ? make_series_task(arena, task, part_count, totals) : task;
        i += part_count ? part_count : 1;
    }
    return count;
}

enum err_code merge_add_sums(struct merge *merge)
{
    struct scan *scan = merge->scan;
    struct adding adding = {.merge = merge};
    uint32_t task_count;
    scan_tasks(scan, &task_count);
    struct scan_task **tasks = arena_new_raw(scan_arena(scan), struct scan_task *, task_count);
    const uint32_t count = join_tasks(merge, tasks);
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < count && !code; i++) {
        struct scan_task *task = tasks[i];
        scan_read_ahead_of(scan, tasks, count, i);
        row_labels_begin(merge->labels, task->block, task->granule);
        if (!task->granule->row_count) { /* the series was idle */
            code = task->is_broken ? ERR_NONE : record_read(merge, task, 0, ERR_NONE);
            continue;
        }
        if (!task->has_totals_only &&
            (scan_query(scan)->profile || row_labels_wants_rows(merge->labels, task->granule))) {
            code = add_rows(merge, task);
            continue;
        }
        const uint32_t group = row_labels_group(merge->labels, 0);
        code = row_labels_stays(group) ? add_to_partials(&adding, task, group)
                                       : add_left_out(merge, task, group);
    }
    if (!code)
        code = flush_partials(&adding);
    partial_sums_destroy(adding.partials);
    return code;
}

#include "store/query/merge_query.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/profile.h"
#include "store/block/block_read.h"
#include "store/block/selector.h"
#include "store/query/counter_increase.h"
#include "store/query/frame_resolution.h"
#include "store/query/neighbours.h"
#include "store/query/partial_sums.h"
#include "store/query/result_cache.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"
#include "store/query/stack_union.h"
#include "store/query/tree_rounding.h"
#include "store/query/weights.h"

#include <math.h>

struct merge {
    struct scan *scan;
    const struct store_query *query;
    struct row_labels *labels;
    struct stack_union *stacks;
    struct weights weights; /* of gauges */
    double unit_ns;         /* unit of the sums of gauges, scaled by 2^scale_bits */
    int scale_bits;
    uint64_t increase_magnitude; /* counter_increase.magnitude of all series so far */
    bool has_increases;          /* a counter increased in the window */
    uint32_t *keys;              /* buffer, per row */
    uint32_t key_capacity;
    struct store_result result;
};

/* ---- the sums ---- */

static enum err_code add_parts(struct merge *merge, const struct scan_task *task);

/* Records that a task was read, or falls back from series totals to the granules. */
static enum err_code record_read(struct merge *merge, struct scan_task *task, uint64_t bytes,
                                 enum err_code code)
{
    if (code && task->parts) /* the granules' own totals may be intact */
        return add_parts(merge, task);
    return scan_note_read(merge->scan, task, task->granule->row_count, bytes, code);
}

static enum err_code check_limits(const struct merge *merge, size_t bytes)
{
    return scan_check_limits(merge->scan, bytes + stack_union_memory(merge->stacks) +
                                              row_labels_memory(merge->labels));
}

/* Reads rows and their labels; returns the bytes that were read. */
static enum err_code read_rows(struct merge *merge, const struct scan_task *task, bool wants_labels,
                               struct block_rows *ret_rows, uint64_t *ret_bytes)
{
    const uint32_t *bytes = task->granule->extent_bytes;
    *ret_bytes = bytes[BLOCK_ROWS] + (wants_labels ? bytes[BLOCK_DETAILS] : 0);
    return scan_read_rows(merge->scan, task, wants_labels, ret_rows);
}

/* Rows that do not stay are counted together at stack 0: those that the filter leaves out are part
 * of the whole. */
static uint32_t number_row(struct merge *merge, const struct scan_task *task, uint32_t stack,
                           uint32_t group)
{
    return stack_union_number(merge->stacks, task->block, row_labels_stays(group) ? stack : 0,
                              group);
}

/* No row of the task is in the result: its sum is known without reading rows. */
static enum err_code add_left_out(struct merge *merge, struct scan_task *task, uint32_t group)
{
    struct scan *scan = merge->scan;
    const struct block_granule *granule = task->granule;
    const uint32_t number = number_row(merge, task, 0, group);
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
    enum err_code code = read_rows(merge, task, true, &rows, &bytes);
    const bool is_read = !code;
    code = record_read(merge, task, bytes, code);
    for (uint32_t i = 0; is_read && !code && i < rows.row_count; i++) {
        if (i % CHECK_ROWS == 0 || row_labels_have_grown(merge->labels))
            code = check_limits(merge, 0);
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
            stack_union_sum(merge->stacks, number_row(merge, task, 0, ROW_LABELS_LEFT_OUT));
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
            *stack_union_sum(merge->stacks, number_row(merge, task, totals.stacks[i], group)) +=
                totals.sums[i];
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
    enum err_code code = check_limits(merge, partial_sums_memory(adding->partials));
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
    return check_limits(merge, 0);
}

/* True for the first granule of its key when it is small compared with its block. */
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
        return code ? code : check_limits(merge, 0);
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

static enum err_code add_tasks(struct merge *merge)
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

/* ---- means ---- */

/* Chooses a unit in which all sums stay below 2^62. Example: a magnitude of 10^6 takes 20 bits, so
 * values are scaled by 2^40, the most that is needed. */
static void choose_unit(struct merge *merge)
{
    int bits = 0;
    while (bits < 62 && merge->weights.magnitude >> bits)
        bits++;
    merge->scale_bits = 62 - bits < 40 ? 62 - bits : 40;
    merge->unit_ns = ldexp(1 / (double)merge->weights.covered_ns, merge->scale_bits);
}

/* The part of the average of a value that holds for hold_ns, scaled. */
static int64_t weigh(const struct merge *merge, int64_t value, double hold_ns)
{
    return llround((double)value * hold_ns * merge->unit_ns);
}

static void add_weighed(struct merge *merge, const struct scan_task *task, uint32_t stack,
                        uint32_t group, int64_t value)
{
    *stack_union_sum(merge->stacks, number_row(merge, task, stack, group)) += value;
}

/* Row by row. */
static enum err_code weigh_rows(struct merge *merge, struct scan_task *task,
                                const struct weight *weight, bool wants_labels)
{
    struct block_rows rows;
    uint64_t bytes;
    enum err_code code = read_rows(merge, task, wants_labels, &rows, &bytes);
    const bool is_read = !code;
    code = record_read(merge, task, bytes, code);
    for (uint32_t i = 0; is_read && !code && i < rows.row_count; i++) {
        const uint32_t ordinal = rows.ordinals[i];
        if (ordinal < weight->first || ordinal >= weight->end)
            continue;
        if (row_labels_have_grown(merge->labels))
            code = check_limits(merge, 0);
        const uint32_t set = wants_labels && rows.label_sets ? rows.label_sets[i] : 0;
        const int64_t hold_ns = weight->holds_ns[ordinal - task->first];
        add_weighed(merge, task, rows.stacks[i], row_labels_group(merge->labels, set),
                    weigh(merge, rows.values[i], (double)hold_ns));
    }
    return code ? code : check_limits(merge, 0);
}

/* All snapshots have the same weight: the totals are enough. */
static enum err_code weigh_totals(struct merge *merge, struct scan_task *task,
                                  const struct weight *weight, uint32_t group)
{
    struct scan *scan = merge->scan;
    struct block_totals totals;
    enum err_code code = scan_read_totals(scan, task, &totals);
    for (uint32_t i = 0; !code && i < totals.count; i++)
        add_weighed(merge, task, totals.stacks[i], group,
                    weigh(merge, totals.sums[i], weight->mean_ns));
    code = record_read(merge, task, task->granule->extent_bytes[BLOCK_TOTALS], code);
    return code ? code : check_limits(merge, 0);
}

static enum err_code weigh_task(struct merge *merge, struct scan_task *task,
                                const struct weight *weight)
{
    if (task->is_broken || weight->first == weight->end)
        return ERR_NONE;
    enum err_code code = scan_open_stacks(merge->scan, task);
    if (code || task->is_broken)
        return code;
    row_labels_begin(merge->labels, task->block, task->granule);
    if (!task->granule->row_count) /* all values are 0 */
        return record_read(merge, task, 0, ERR_NONE);
    const bool wants_labels =
        !task->has_totals_only && row_labels_wants_rows(merge->labels, task->granule);
    const bool is_whole = weight->end - weight->first == task->granule->profile_count;
    if (wants_labels || !weight->is_even || !is_whole)
        return weigh_rows(merge, task, weight, wants_labels);
    return weigh_totals(merge, task, weight, row_labels_group(merge->labels, 0));
}

static enum err_code add_means_once(struct merge *merge)
{
    struct scan *scan = merge->scan;
    enum err_code code = weights_find(scan, &merge->weights);
    if (code || !merge->weights.covered_ns)
        return code;
    choose_unit(merge);
    stack_union_destroy(merge->stacks);
    merge->stacks = stack_union_create();
    uint32_t task_count;
    struct scan_task *tasks = scan_tasks(scan, &task_count);
    for (uint32_t i = 0; i < task_count && !code; i++) {
        scan_read_ahead(scan, i);
        code = weigh_task(merge, &tasks[i], &merge->weights.tasks[i]);
    }
    return code;
}

/* If a task cannot be read, starts again without it, because the weights of the others change. */
static enum err_code add_means(struct merge *merge)
{
    const struct store_statistics *statistics = scan_statistics(merge->scan);
    const struct scan_reads opening = {.bytes_read = statistics->bytes_read};
    enum err_code code;
    uint32_t broken_count;
    do {
        scan_set_reads(merge->scan, opening);
        broken_count = statistics->broken_count;
        code = add_means_once(merge);
    } while (!code && statistics->broken_count != broken_count);
    return code;
}

/* ---- counter deltas ---- */

/* Sets keys[i] to the number of row i in the union. Rows of one stack without labels are looked up
 * once. */
static enum err_code find_keys(struct merge *merge, const struct scan_task *task,
                               const struct block_rows *rows)
{
    vec_reserve(merge->keys, merge->key_capacity, rows->row_count);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        if (row_labels_have_grown(merge->labels) && check_limits(merge, 0))
            return scan_err(merge->scan)->code;
        const uint32_t set = rows->label_sets ? rows->label_sets[i] : 0;
        const uint32_t group = row_labels_group(merge->labels, set);
        const bool is_same = i && !rows->label_sets && rows->stacks[i] == rows->stacks[i - 1];
        merge->keys[i] =
            is_same ? merge->keys[i - 1] : number_row(merge, task, rows->stacks[i], group);
    }
    return ERR_NONE;
}

static enum err_code add_snapshots(struct merge *merge, struct scan_task *task,
                                   struct counter_increase *increase, struct neighbours *neighbours)
{
    struct block_rows rows;
    uint64_t bytes;
    row_labels_begin(merge->labels, task->block, task->granule);
    const bool wants_labels =
        !task->has_totals_only && row_labels_wants_rows(merge->labels, task->granule);
    enum err_code code = read_rows(merge, task, wants_labels, &rows, &bytes);
    const bool is_read = !code;
    code = record_read(merge, task, bytes, code);
    if (!is_read)
        return code;
    if (!wants_labels)
        rows.label_sets = NULL;
    code = find_keys(merge, task, &rows);
    if (code)
        return code;
    counter_increase_add(increase, task->block, &rows, task->first, task->end, merge->keys);
    for (uint32_t i = task->first; i < task->end; i++)
        neighbours_note(neighbours, rows.profiles[i].time_ns);
    return check_limits(merge, counter_increase_memory(increase));
}

/* The scale of increases: as many bits for fractions as the sum of all values leaves, or none. */
static int increase_scale_bits(const struct scan *scan)
{
    enum { MOST = 40 };
    uint64_t magnitude = 0;
    int bits = 0;
    uint32_t task_count;
    const struct scan_task *tasks = scan_tasks(scan, &task_count);
    for (uint32_t i = 0; i < task_count; i++) {
        if (__builtin_add_overflow(magnitude, tasks[i].granule->magnitude, &magnitude))
            return 0;
    }
    while (bits < 62 && magnitude >> bits)
        bits++;
    return 62 - bits < MOST ? 62 - bits : MOST;
}

/* The part of a value in the first part_ns of duration_ns, scaled. */
static int64_t first_part(const struct merge *merge, int64_t value, int64_t part_ns,
                          int64_t duration_ns)
{
    const __int128 whole = (__int128)value << merge->scale_bits;
    if (part_ns == duration_ns)
        return (int64_t)whole;
    /* Both factors are below 2^63. */
    return (int64_t)(whole * part_ns / duration_ns);
}

/*
 * An increase is spread evenly over the time between its snapshots; the part inside the window
 * counts.
 */
static void add_increase(void *context, const struct counter_delta *delta)
{
    struct merge *merge = context;
    const struct store_query *query = merge->query;
    const int64_t duration_ns = cadence_distance(delta->since_ns, delta->time_ns);
    const int64_t from_ns =
        delta->since_ns > query->start_ns ? 0 : cadence_distance(delta->since_ns, query->start_ns);
    const int64_t to_ns = delta->time_ns < query->end_ns
                              ? duration_ns
                              : cadence_distance(delta->since_ns, query->end_ns);
    if (from_ns >= to_ns)
        return;
    merge->has_increases = true;
    *stack_union_sum(merge->stacks, delta->key) +=
        first_part(merge, delta->value, to_ns, duration_ns);
    if (from_ns)
        *stack_union_start(merge->stacks, delta->key) +=
            first_part(merge, delta->value, from_ns, duration_ns);
}

static enum err_code add_neighbours(struct merge *merge, struct scan_task *tasks, uint32_t begin,
                                    uint32_t end, bool is_before, struct counter_increase *increase,
                                    struct neighbours *neighbours)
{
    struct scan_task *task;
    enum err_code code;
    do {
        code = neighbours_next(neighbours, tasks, begin, end, is_before, &task);
        if (code || !task || task->first == task->end)
            continue;
        code = scan_open_stacks(merge->scan, task);
        if (!code && !task->is_broken)
            code = add_snapshots(merge, task, increase, neighbours);
    } while (!code && task);
    return code;
}

static enum err_code add_series_increases(struct merge *merge, struct scan_task *tasks,
                                          uint32_t begin, uint32_t end,
                                          struct neighbours *neighbours)
{
    struct scan *scan = merge->scan;
    struct counter_increase increase = {0};
    uint32_t count;
    enum err_code code = ERR_NONE;
    neighbours_begin_series(neighbours);
    for (uint32_t i = begin; i < end && !code; i++) {
        scan_read_ahead(scan, i);
        if (!tasks[i].is_neighbour)
            code = add_snapshots(merge, &tasks[i], &increase, neighbours);
    }
    if (!code)
        code = add_neighbours(merge, tasks, begin, end, true, &increase, neighbours);
    if (!code)
        code = add_neighbours(merge, tasks, begin, end, false, &increase, neighbours);
    if (!code) {
        increase.magnitude = merge->increase_magnitude;
        counter_increase_compute(&increase, NULL, add_increase, merge);
        merge->increase_magnitude = increase.magnitude;
        if (increase.restarts_often)
            scan_count_restarting(scan);
        const int64_t *times_ns = counter_increase_times(&increase, &count);
        if (!neighbours_reach_window(neighbours, times_ns, count))
            scan_discount_series(scan);
        if (increase.overflows)
            code = scan_refuse_increases(scan);
    }
    counter_increase_fini(&increase);
    return code;
}

/* Series by series. */
static enum err_code add_increases(struct merge *merge)
{
    struct scan *scan = merge->scan;
    struct neighbours neighbours;
    enum err_code code = ERR_NONE;
    neighbours_init(&neighbours, scan);
    scan_sort_by_series(scan);
    merge->scale_bits = increase_scale_bits(scan);
    uint32_t task_count;
    struct scan_task *tasks = scan_tasks(scan, &task_count);
    for (uint32_t i = 0, end; i < task_count && !code; i = end) {
        end = scan_next_series(scan, i);
        if (neighbours_can_matter(&neighbours, tasks, i, end))
            code = add_series_increases(merge, tasks, i, end, &neighbours);
        else
            scan_discount_series(scan);
    }
    return code;
}

/* ---- the result ---- */

static const char *text_of(struct scan *scan, struct span text)
{
    return arena_strndup(scan_arena(scan), text.data, text.size);
}

/* The type of the series that were found, else the one that the query names. */
static const struct span *find_type(struct scan *scan, struct span *named)
{
    const struct store_query *query = scan_query(scan);
    struct selector *selector;
    struct err err;
    const struct store_type *type = scan_type(scan);
    if (type)
        return type->parts;
    const bool is_one = query->selector_count == 1 &&
                        !selector_parse(scan_arena(scan), query->selectors[0], &selector, &err);
    return is_one && selector_find_type(selector, named) ? named : NULL;
}

struct names_limit {
    const struct merge *merge;
    size_t unnamed_bytes; /* size of the profile before names were added */
};

static enum err_code check_names(void *context, size_t bytes, struct err *err)
{
    const struct names_limit *limit = context;
    const struct merge *merge = limit->merge;
    const enum err_code code = check_limits(merge, bytes - limit->unnamed_bytes);
    if (code && err != scan_err(merge->scan))
        *err = *scan_err(merge->scan);
    return code;
}

/* Counts what names add: the tables of the profile are about as large as those of the union, and
 * its samples were counted before they were made. The frames of inlined calls also make the views
 * of reports larger. */
static enum err_code add_names(struct merge *merge, struct profile *profile)
{
    enum { FRAME_BYTES = 2 * sizeof(uint32_t) }; /* in two views */
    struct scan *scan = merge->scan;
    struct names_limit limit = {.merge = merge, .unnamed_bytes = arena_bytes(profile->arena)};
    const struct names_memory memory = {.context = &limit, .check = check_names};
    const uint64_t before = profile_count_frames(profile);
    enum err_code code =
        frame_resolution_resolve(scan_resolver(scan), scan_query(scan)->tenant_id, &memory, profile,
                                 profile->arena, profile, scan_symbolization(scan), scan_err(scan));
    if (code)
        return code;
    const uint64_t after = profile_count_frames(profile);
    const size_t frame_bytes = after > before ? (size_t)(after - before) * FRAME_BYTES : 0;
    return check_limits(merge, arena_bytes(profile->arena) - limit.unnamed_bytes + frame_bytes);
}

static enum err_code check_samples(const void *context, size_t bytes)
{
    return check_limits(context, bytes);
}

/* The values of gauges and counters are scaled until here, because the order depends on names. */
static enum err_code round_values(struct merge *merge, struct profile *profile,
                                  const int64_t *starts)
{
    struct scan *scan = merge->scan;
    if (merge->result.aggregation == STORE_SUM)
        return ERR_NONE;
    enum err_code code =
        check_limits(merge, arena_bytes(profile->arena) + tree_rounding_memory(profile));
    return code ? code
                : tree_rounding_apply(profile, starts, merge->scale_bits,
                                      scan_query(scan)->cpu_deadline_ns, scan_err(scan));
}

static enum err_code make_profile(struct merge *merge)
{
    struct scan *scan = merge->scan;
    struct store_result *result = &merge->result;
    struct stack_union_type type = {
        .sample_type = "samples", .sample_unit = "count", .period_type = "", .period_unit = ""};
    struct span named[SELECTOR_TYPE_PARTS];
    const struct span *parts = find_type(scan, named);
    if (parts) {
        type = (struct stack_union_type){
            .sample_type = text_of(scan, parts[STORE_TYPE_SAMPLE_TYPE]),
            .sample_unit = text_of(scan, parts[STORE_TYPE_SAMPLE_UNIT]),
            .period_type = text_of(scan, parts[STORE_TYPE_PERIOD_TYPE]),
            .period_unit = text_of(scan, parts[STORE_TYPE_PERIOD_UNIT]),
        };
    }
    const struct store_query *query = scan_query(scan);
    const struct store_type *scanned = scan_type(scan);
    int64_t first_ns, last_ns;
    const bool has_own = scan_find_times(scan, &first_ns, &last_ns);
    if (scanned) {
        type.time_ns = has_own ? first_ns : query->start_ns;
        type.duration_ns =
            has_own ? last_ns - first_ns : cadence_distance(query->start_ns, query->end_ns);
    }
    type.labels = merge->labels;
    type.check_memory = check_samples;
    type.check_context = merge;
    const bool has_data = has_own || merge->has_increases || merge->weights.covered_ns;
    result->type = scanned && has_data ? scanned->name : "";
    struct profile *profile;
    const int64_t *starts;
    enum err_code code =
        stack_union_profile(merge->stacks, &type, &profile, &starts, scan_err(scan));
    if (code)
        return code;
    code = add_names(merge, profile);
    if (!code)
        code = round_values(merge, profile, starts);
    result->statistics = *scan_statistics(scan);
    if (code)
        profile_destroy(profile);
    else
        result->profile = result->own_profile = profile;
    return code;
}

static enum err_code add_values(struct merge *merge)
{
    const struct scan *scan = merge->scan;
    enum err_code code = ERR_NONE;
    /* A single profile is returned as it is, not aggregated. */
    merge->result.aggregation = scan_query(scan)->profile ? STORE_SUM : scan_aggregation(scan);
    merge->stacks = stack_union_create();
    if (merge->result.aggregation == STORE_MEAN)
        code = add_means(merge);
    else
        code = merge->result.aggregation == STORE_SUM ? add_tasks(merge) : add_increases(merge);
    if (!code)
        code = row_labels_check(merge->labels, scan_err(merge->scan));
    if (!code)
        scan_note_absent_filter_label(merge->scan, row_labels_describe_absent_key(merge->labels));
    int64_t left_out, start;
    const uint32_t count = stack_union_left_out(merge->stacks, &left_out, &start);
    merge->result.left_out = tree_rounding_round(left_out, merge->scale_bits) -
                             tree_rounding_round(start, merge->scale_bits);
    if (!code && count)
        merge->result.absent_label = row_labels_describe_absent(merge->labels);
    return code ? code : make_profile(merge);
}

static enum err_code make_result(struct scan *scan, struct store_result *ret_result)
{
    const struct store_query *query = scan_query(scan);
    struct merge merge = {.scan = scan, .query = query};
    merge.labels = row_labels_create(
        scan_arena(scan), query->label_filter, scan_row_selectors(scan), query->label_names,
        query->label_name_count, query->wants_all_labels ? ROW_LABELS_ALL : ROW_LABELS_EXACT);
    enum err_code code = scan_open_all_stacks(scan, true);
    if (!code)
        code = add_values(&merge);
    *ret_result = merge.result;
    stack_union_destroy(merge.stacks);
    row_labels_destroy(merge.labels);
    mem_free(merge.keys);
    return code;
}

struct merging {
    struct result_cache *results;
    struct store_result result;
    bool lacks_neighbours; /* the query has to run again, with them */
};

/* Snapshots need their neighbours, which the first scan does not look for. */
static bool lacks_neighbours(const struct scan *scan)
{
    return !scan_query(scan)->ahead_ns && !scan_query(scan)->profile &&
           !scan_query(scan)->wants_single_profiles &&
           (!scan_type(scan) || scan_aggregation(scan) != STORE_SUM);
}

/* A merge takes the deltas that begin in the window, so tasks found by the reach are dropped. */
static void drop_deltas_outside(struct scan *scan)
{
    if (scan_query(scan)->ahead_ns && scan_aggregation(scan) == STORE_SUM)
        scan_drop_all(scan);
}

/* The memory of the caller's use. The blocks, which the scan still holds, are freed before it. */
static enum err_code check_use(const struct scan *scan, struct store_result *result)
{
    const struct store_query *query = scan_query(scan);
    if (!query->result_use_bytes)
        return ERR_NONE;
    const enum err_code code = scan_check_total(
        scan, arena_bytes(result->profile->arena) +
                  query->result_use_bytes(query->result_use_context, result->profile));
    if (code)
        merge_query_fini_result(result);
    return code;
}

static enum err_code merge_tasks(struct scan *scan, void *context)
{
    struct merging *merging = context;
    struct store_result *result = &merging->result;
    const struct store_query *query = scan_query(scan);
    char identity[STORE_IDENTITY_BYTES];
    *result = (struct store_result){0};
    enum err_code code = scan_check_types(scan);
    if (!code)
        code = scan_check_magnitude(scan);
    if (code)
        return code;
    merging->lacks_neighbours = lacks_neighbours(scan);
    if (merging->lacks_neighbours)
        return ERR_NONE;
    drop_deltas_outside(scan);
    scan_count_unlabelled(scan, query->label_names, query->label_name_count);
    result_cache_identify(scan, identity);
    if (*identity && query->has_result && query->has_result(query->has_result_context, identity)) {
        result->is_known = true;
        result->type = scan_type(scan)->name;
        return ERR_NONE;
    }
    code = *identity && !query->wants_own_profile
               ? scan_explain_wait(
                     scan, result_cache_ref(merging->results, scan, identity, make_result, result))
               : make_result(scan, result);
    if (!code)
        code = check_use(scan, result);
    if (!code && !result->statistics.broken_count && !result->statistics.oversized_count)
        memcpy(result->identity, identity, sizeof(identity));
    return code;
}

/* An empty result would look as if there were no profiles. */
static bool is_all_left_out(const struct store_result *result)
{
    const struct store_statistics *read = &result->statistics;
    return !result->is_known && read->oversized_count && !read->profile_count &&
           !result->left_out && !result->profile->sample_count;
}

enum err_code merge_query_run(const struct scan_source *source, struct arena *arena,
                              const struct store_query *query, struct store_result *ret_result,
                              struct err *err)
{
    struct merging merging = {.results = source->results};
    struct store_query reaching = *query;
    enum err_code code;
    bool is_again;
    do {
        struct arena *run = arena_create();
        code = scan_run(source, &reaching, SCAN_TASKS, run, merge_tasks, &merging, err);
        is_again = !code && merging.lacks_neighbours &&
                   neighbours_extend(&reaching, NEIGHBOURS_REACH_MAX_NS);
        if (is_again)
            merge_query_fini_result(&merging.result);
        if (is_again || code)
            arena_destroy(run);
        else
            arena_adopt(arena, run);
    } while (is_again);
    if (code)
        return code;
    if (is_all_left_out(&merging.result))
        code = err_set(err, ERR_LIMIT,
                       "all that this query finds is left out: names take too much of its memory; "
                       "the largest block takes %s: select other series or less time",
                       merging.result.statistics.oversized_message);
    else if (!*merging.result.type && !merging.result.statistics.broken_count)
        code = scan_explain_nothing(source, query, arena, err);
    if (code)
        merge_query_fini_result(&merging.result);
    else
        *ret_result = merging.result;
    return code;
}

void merge_query_fini_result(struct store_result *result)
{
    profile_destroy(result->own_profile);
    flight_cache_unref(result->kept);
    result->profile = result->own_profile = NULL;
    result->kept = NULL;
}

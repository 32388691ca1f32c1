/* Merges counters: the increases between snapshots are summed (counter_increase). */
#include "store/query/merge_internal.h"

#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "store/query/neighbours.h"
#include "store/values/cadence.h"
#include "store/values/counter_increase.h"

/* Sets keys[i] to the number of row i in the union. Rows of one stack without labels are looked up
 * once. */
static enum err_code find_keys(struct merge *merge, const struct scan_task *task,
                               const struct block_rows *rows)
{
    vec_reserve(merge->keys, merge->key_capacity, rows->row_count);
    for (uint32_t i = 0; i < rows->row_count; i++) {
        if (row_labels_have_grown(merge->labels) && merge_check_limits(merge, 0))
            return scan_err(merge->scan)->code;
        const uint32_t set = rows->label_sets ? rows->label_sets[i] : 0;
        const uint32_t group = row_labels_group(merge->labels, set);
        const bool is_same = i && !rows->label_sets && rows->stacks[i] == rows->stacks[i - 1];
        merge->keys[i] =
            is_same ? merge->keys[i - 1] : merge_number_row(merge, task, rows->stacks[i], group);
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
    enum err_code code = merge_read_rows(merge, task, wants_labels, &rows, &bytes);
    const bool is_read = !code;
    code = merge_note_read(merge, task, bytes, code);
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
    return merge_check_limits(merge, counter_increase_memory(increase));
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
    struct counter_increase increase = {.start_ns = merge->query->start_ns,
                                        .end_ns = merge->query->end_ns};
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

/* Reads the counters series by series, since increases are computed from all rows of a series. */
enum err_code merge_add_increases(struct merge *merge)
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

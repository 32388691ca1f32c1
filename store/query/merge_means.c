/* Merges gauges: each snapshot counts by the part of the window for which it holds (weights). */
#include "store/query/merge_internal.h"

#include <math.h>

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
    *stack_union_sum(merge->stacks, merge_number_row(merge, task, stack, group)) += value;
}

/* Weighs each row by the time for which its snapshot holds. */
static enum err_code weigh_rows(struct merge *merge, struct scan_task *task,
                                const struct weight *weight, bool wants_labels)
{
    struct block_rows rows;
    uint64_t bytes;
    enum err_code code = merge_read_rows(merge, task, wants_labels, &rows, &bytes);
    const bool is_read = !code;
    code = merge_note_read(merge, task, bytes, code);
    for (uint32_t i = 0; is_read && !code && i < rows.row_count; i++) {
        const uint32_t ordinal = rows.ordinals[i];
        if (ordinal < weight->first || ordinal >= weight->end)
            continue;
        if (row_labels_have_grown(merge->labels))
            code = merge_check_limits(merge, 0);
        const uint32_t set = wants_labels && rows.label_sets ? rows.label_sets[i] : 0;
        const int64_t hold_ns = weight->holds_ns[ordinal - task->first];
        add_weighed(merge, task, rows.stacks[i], row_labels_group(merge->labels, set),
                    weigh(merge, rows.values[i], (double)hold_ns));
    }
    return code ? code : merge_check_limits(merge, 0);
}

/* For a granule whose snapshots all have the same weight: weighs its totals. */
static enum err_code weigh_totals(struct merge *merge, struct scan_task *task,
                                  const struct weight *weight, uint32_t group)
{
    struct scan *scan = merge->scan;
    struct block_totals totals;
    enum err_code code = scan_read_totals(scan, task, &totals);
    for (uint32_t i = 0; !code && i < totals.count; i++)
        add_weighed(merge, task, totals.stacks[i], group,
                    weigh(merge, totals.sums[i], weight->mean_ns));
    code = merge_note_read(merge, task, task->granule->extent_bytes[BLOCK_TOTALS], code);
    return code ? code : merge_check_limits(merge, 0);
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
        return merge_note_read(merge, task, 0, ERR_NONE);
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
enum err_code merge_add_means(struct merge *merge)
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

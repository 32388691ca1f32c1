/* What a scan found, for the query that reads it; the order of its tasks; its statistics. */
#include "store/query/scan_internal.h"

#include "lib/base/arena.h"
#include "lib/profile/report/label_filter.h"

#include <stdlib.h>

const struct store_query *scan_query(const struct scan *scan)
{
    return scan->query;
}

struct arena *scan_arena(const struct scan *scan)
{
    return scan->arena;
}

struct err *scan_err(const struct scan *scan)
{
    return scan->err;
}

const struct frame_resolver *scan_resolver(const struct scan *scan)
{
    return scan->resolver;
}

const struct store_type *scan_types(const struct scan *scan, uint32_t *ret_count)
{
    *ret_count = scan->type_count;
    return scan->types;
}

const struct store_type *scan_type(const struct scan *scan)
{
    return scan->type_count ? &scan->types[0] : NULL;
}

enum store_aggregation scan_aggregation(const struct scan *scan)
{
    return scan->type_count ? scan->types[0].aggregation : STORE_SUM;
}

const struct store_series *scan_series(const struct scan *scan, uint32_t *ret_count)
{
    *ret_count = scan->series_count;
    return scan->series;
}

struct scan_task *scan_tasks(const struct scan *scan, uint32_t *ret_count)
{
    *ret_count = scan->task_count;
    return scan->tasks;
}

uint32_t scan_block_count(const struct scan *scan)
{
    return scan->block_count;
}

bool scan_find_times(const struct scan *scan, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
    *ret_first_ns = scan->first_ns;
    *ret_last_ns = scan->last_ns;
    return scan->first_ns <= scan->last_ns;
}

const struct selector_set *scan_row_selectors(const struct scan *scan)
{
    return scan->row_selectors;
}

bool scan_may_be_of_samples(const struct scan *scan)
{
    return scan->may_be_of_samples;
}

bool scan_has_open_ends_before(const struct scan *scan)
{
    return scan->has_open_ends_before;
}

/* ---- order of tasks ---- */

static int compare_series(const void *a, const void *b)
{
    const struct scan_task *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->block_index != y->block_index)
        return x->block_index < y->block_index ? -1 : 1;
    if (x->granule != y->granule)
        return x->granule < y->granule ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

void scan_sort_by_series(struct scan *scan)
{
    if (scan->task_count)
        qsort(scan->tasks, scan->task_count, sizeof(*scan->tasks), compare_series);
}

static int compare_ends(const void *a, const void *b)
{
    const int64_t x = ((const struct scan_task *)a)->granule->end_ns;
    const int64_t y = ((const struct scan_task *)b)->granule->end_ns;
    return (x < y) - (x > y);
}

void scan_sort_newest_first(struct scan *scan)
{
    if (scan->task_count)
        qsort(scan->tasks, scan->task_count, sizeof(*scan->tasks), compare_ends);
}

uint32_t scan_next_series(const struct scan *scan, uint32_t task)
{
    const uint32_t series = scan->tasks[task].series;
    while (task < scan->task_count && scan->tasks[task].series == series)
        task++;
    return task;
}

/* ---- removal ---- */

void scan_keep_series(struct scan *scan, const bool *are_kept)
{
    uint32_t *type_numbers = arena_new(scan->arena, uint32_t, scan->type_count);
    bool *are_types = arena_new(scan->arena, bool, scan->type_count);
    uint32_t series_count = 0, type_count = 0;
    for (uint32_t i = 0; i < scan->series_count; i++) {
        if (!are_kept[i])
            continue;
        are_types[scan->series[i].type] = true;
        scan->series[series_count++] = scan->series[i];
    }
    for (uint32_t i = 0; i < scan->type_count; i++) {
        type_numbers[i] = type_count;
        if (are_types[i])
            scan->types[type_count++] = scan->types[i];
    }
    for (uint32_t i = 0; i < series_count; i++)
        scan->series[i].type = type_numbers[scan->series[i].type];
    scan->series_count = scan->statistics.series_count = series_count;
    scan->type_count = type_count;
}

void scan_drop_all(struct scan *scan)
{
    scan->task_count = scan->type_count = 0;
}

/* ---- statistics ---- */

const struct store_statistics *scan_statistics(const struct scan *scan)
{
    return &scan->statistics;
}

struct store_symbolization *scan_symbolization(struct scan *scan)
{
    return &scan->statistics.names;
}

struct scan_reads scan_get_reads(const struct scan *scan)
{
    return (struct scan_reads){.granule_count = scan->statistics.granule_count,
                               .row_count = scan->statistics.row_count,
                               .bytes_read = scan->statistics.bytes_read};
}

void scan_set_reads(struct scan *scan, struct scan_reads reads)
{
    scan->statistics.granule_count = reads.granule_count;
    scan->statistics.row_count = reads.row_count;
    scan->statistics.bytes_read = reads.bytes_read;
}

void scan_count_rows(struct scan *scan, uint64_t row_count)
{
    scan->statistics.row_count += row_count;
}

void scan_count_bytes(struct scan *scan, uint64_t bytes)
{
    scan->statistics.bytes_read += bytes;
}

void scan_discount_series(struct scan *scan)
{
    scan->statistics.series_count--;
}

void scan_count_interleaved(struct scan *scan)
{
    scan->statistics.interleaved_count++;
}

void scan_count_restarting(struct scan *scan)
{
    scan->statistics.restarting_count++;
}

void scan_note_absent_filter_label(struct scan *scan, const char *label)
{
    scan->statistics.absent_filter_label = label;
}

void scan_note_cut(struct scan *scan, const struct scan_task *task)
{
    scan->statistics.cut_count++;
    scan->statistics.totals_count--;
    scan->statistics.profile_count -= scan_profile_count(task);
}

static bool has_label(const struct store_series *series, struct span name)
{
    for (uint32_t i = 0; i < series->label_count; i++) {
        if (span_equal(series->labels[i].name, name))
            return true;
    }
    return false;
}

static bool has_labels(const struct store_series *series, const struct span *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!has_label(series, names[i]))
            return false;
    }
    return true;
}

/* True if there are no selectors, or if the series has all labels that one of them compares: its
 * samples did not have to be compared. */
static bool has_compared(const struct scan *scan, const struct store_series *series)
{
    struct span names[SELECTOR_MAX_MATCHERS];
    const struct selector_set *set = &scan->state->set;
    for (size_t i = 0; i < set->count; i++) {
        if (has_labels(series, names, selector_compared_labels(set->selectors[i], names)))
            return true;
    }
    return set->count == 0;
}

void scan_count_unlabelled(struct scan *scan, const struct span *names, size_t name_count)
{
    const struct store_query *query = scan->query;
    struct span keys[LABEL_RULES_MAX];
    const size_t key_count = query->label_filter ? label_filter_keys(query->label_filter, keys) : 0;
    scan->statistics.unlabelled_count = 0;
    for (uint32_t i = 0; i < scan->task_count && scan->statistics.totals_count; i++) {
        const struct scan_task *task = &scan->tasks[i];
        const struct store_series *series = &scan->series[task->series];
        const bool is_complete = !query->wants_all_labels && has_labels(series, keys, key_count) &&
                                 has_labels(series, names, name_count) &&
                                 has_compared(scan, series);
        scan->statistics.unlabelled_count += task->has_totals_only && !is_complete;
    }
}

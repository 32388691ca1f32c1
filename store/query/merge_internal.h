/*
 * merge_internal: the state of one merge. merge_sums.c adds deltas, merge_means.c gauges and
 * merge_increases.c counters to its stacks; merge_query.c makes a profile of the stacks.
 *
 * Threads: a merge belongs to one thread.
 */
#ifndef STORE_QUERY_MERGE_INTERNAL_H
#define STORE_QUERY_MERGE_INTERNAL_H

#include "store/block/block_read.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"
#include "store/query/stack_union.h"
#include "store/query/weights.h"

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

/* Add the values of all tasks to the stacks; merge_query.c calls the one for the aggregation of the
 * type. Errors: the query's limits, ERR_TOO_LARGE (a sum overflows), what reading returns. */
enum err_code merge_add_sums(struct merge *merge) MUST_USE;
enum err_code merge_add_means(struct merge *merge) MUST_USE;
enum err_code merge_add_increases(struct merge *merge) MUST_USE;

/* ---- shared ---- */

static inline enum err_code merge_check_limits(const struct merge *merge, size_t bytes)
{
    return scan_check_limits(merge->scan, bytes + stack_union_memory(merge->stacks) +
                                              row_labels_memory(merge->labels));
}

/* Reads rows and their labels; returns the bytes that were read. */
static inline enum err_code merge_read_rows(struct merge *merge, const struct scan_task *task,
                                            bool wants_labels, struct block_rows *ret_rows,
                                            uint64_t *ret_bytes)
{
    const uint32_t *bytes = task->granule->extent_bytes;
    *ret_bytes = bytes[BLOCK_ROWS] + (wants_labels ? bytes[BLOCK_DETAILS] : 0);
    return scan_read_rows(merge->scan, task, wants_labels, ret_rows);
}

/* The number of the row's stack in the union. Rows that do not stay are summed together at stack 0,
 * because those that the label filter leaves out count in the total of the profile. */
static inline uint32_t merge_number_row(struct merge *merge, const struct scan_task *task,
                                        uint32_t stack, uint32_t group)
{
    return stack_union_number(merge->stacks, task->block, row_labels_stays(group) ? stack : 0,
                              group);
}

/* Records that a task of the scan was read: scan_note_read with the rows of its granule. */
static inline enum err_code merge_note_read(struct merge *merge, struct scan_task *task,
                                            uint64_t bytes, enum err_code code)
{
    return scan_note_read(merge->scan, task, task->granule->row_count, bytes, code);
}

#endif

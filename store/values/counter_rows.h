/*
 * counter_rows: the rows of one counter, which counter_increase and snapshot_chains share.
 *
 * Several rows may be of one stack and snapshot, because profiles with equal times are one
 * snapshot: their sum counts. Private to store/.
 */
#ifndef STORE_VALUES_COUNTER_ROWS_H
#define STORE_VALUES_COUNTER_ROWS_H

#include <stdint.h>

struct counter_row {
    uint32_t stack;
    uint32_t key;
    uint32_t snapshot;
    int64_t value;
};

/* Sorts rows by stack, then by snapshot; or by snapshot, then by stack. */
void counter_rows_sort_by_stack(struct counter_row *rows, uint64_t count);
void counter_rows_sort_by_snapshot(struct counter_row *rows, uint64_t count);

/* Returns the index of the first row from i on, before end, that has another stack or snapshot than
 * row i, and the sum of those before it. */
uint64_t counter_rows_sum(const struct counter_row *rows, uint64_t i, uint64_t end,
                          int64_t *ret_sum);

/* The sum, or the largest or smallest number if it overflows: values of profiles with equal times
 * may add up to more than an int64_t holds. */
int64_t counter_rows_add_limited(int64_t a, int64_t b);

#endif

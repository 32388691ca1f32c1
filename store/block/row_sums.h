/*
 * row_sums: sums the rows of a granule by stack, for a range of its profiles.
 *
 * Rows are stored entry by entry (store/block/block_format.h), and within an entry by ordinal, so
 * the rows of a range of ordinals are adjacent: an entry's sum is the difference of two running
 * sums. When the first and last row of an entry are in the range, no other row is looked at.
 * Columns are unpacked run by run, so all data stays in the L1 cache. AVX2 is used where the
 * processor has it (as in bitpack.h). Private to store/.
 */
#ifndef STORE_BLOCK_ROW_SUMS_H
#define STORE_BLOCK_ROW_SUMS_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct row_sums {
    const uint32_t *stacks; /* per entry */
    const uint32_t *counts; /* rows of each entry, at least 1; row_count in all */
    uint32_t row_count;
    struct span ordinals; /* packed, per row: differences within an entry … */
    bool are_distinct;    /* … less one, except an entry's first */
    struct span values;   /* packed, per row; 64 bits */
    bool are_positive;    /* values are stored less one; else as column_zigzag */
    int64_t divisor;      /* stored values were divided by it */
    uint32_t first;       /* first <= ordinal < end */
    uint32_t end;
};

/* Adds to sums[stack] of each entry the sum of its rows in the range. The absolute value of each
 * sum must stay below 2^63. False when a column is malformed: then nothing was added. */
bool row_sums_add(const struct row_sums *rows, int64_t *sums);
/* The same without AVX2, for tests and benchmarks. */
bool row_sums_add_portable(const struct row_sums *rows, int64_t *sums);

#endif

/*
 * row_sums: adds up a granule's rows by stack, those of some of its profiles alone.
 *
 * Rows lie entry by entry (store/block/block_format.h), and within an entry in order of their
 * ordinals, so that those in a range are neighbours: an entry's sum is the difference of two
 * running sums, and where its first and last row lie in the range no other is looked at. Columns
 * are unpacked run by run, so that all of it stays in the nearest cache. AVX2 where there is one,
 * and the same code in lanes of what else there is elsewhere. Private to the room.
 */
#ifndef STORE_BLOCK_ROW_SUMS_H
#define STORE_BLOCK_ROW_SUMS_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct row_sums {
    const uint32_t *stacks; /* per entry */
    const uint32_t *counts; /* rows of each entry, at least 1; row_count together */
    uint32_t row_count;
    struct span ordinals; /* packed, per row: differences within an entry … */
    bool are_distinct;    /* … less one, but for an entry's first */
    struct span values;   /* packed, per row; of 64 bits */
    bool are_positive;    /* values are stored less one; else as column_zigzag makes them */
    int64_t divisor;      /* stored values were divided by it */
    uint32_t first;       /* ordinals first <= o < end */
    uint32_t end;
};

/* Adds each entry's sum to sums[its stack]: below 2^63 at any time. False when a column is
 * malformed: then nothing was added. */
bool row_sums_add(const struct row_sums *rows, int64_t *sums);
/* The twin without AVX2, for tests and benchmarks. */
bool row_sums_add_portable(const struct row_sums *rows, int64_t *sums);

#endif

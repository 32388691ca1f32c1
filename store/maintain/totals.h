/*
 * totals: reduces the rows of a granule to what remains when its hour is past the retention of
 * single profiles. Labels of samples and timestamps are removed, and rows are added up.
 *
 * Deltas: one row per stack, with the sum over all profiles and ordinal 0. The profiles stay, with
 * start and duration, but have no rows of their own.
 *
 * Gauges and counters: one row per stack and snapshot. Snapshots cannot be added up, because the
 * weight of a gauge's snapshot and the increase of a counter depend on the next snapshot, which may
 * be in another block or arrive later.
 *
 * So sums, means and increases stay the same, whatever blocks the parts of an hour were in when
 * they were reduced. Private to store/.
 */
#ifndef STORE_MAINTAIN_TOTALS_H
#define STORE_MAINTAIN_TOTALS_H

#include "store/block/block_write.h"
#include "store/types.h"

struct arena;

/* Reduces *rows in place. They must be sorted by stack, then by ordinal. Rows whose sum is 0 are
 * removed. The new columns are in arena. */
void totals_reduce(struct arena *arena, enum store_aggregation aggregation,
                   struct block_rows *rows);

#endif

/*
 * totals: reduces a granule to its totals: without rows of single profiles, labels of samples and
 * timestamps.
 *
 * In a granule of deltas or gauges, each stack gets one row with its sum, as a row of the first
 * profile. Profiles keep their begins, so that means are divided by the right number. In a granule
 * of counters, all snapshots stay, each with one row per stack: profiles between two snapshots may
 * be in another block or arrive later, so no snapshot can be dropped. The sums, means and gains of
 * an hour therefore stay the same, whatever blocks its parts were in when they were reduced.
 * Private to store/.
 */
#ifndef STORE_MAINTAIN_TOTALS_H
#define STORE_MAINTAIN_TOTALS_H

#include "store/block/block_write.h"
#include "store/store.h"

struct arena;

/* Reduces rows that are sorted by stack and ordinal; the new columns are in arena. */
void totals_reduce(struct arena *arena, enum store_aggregation aggregation,
                   struct block_rows *rows);

#endif

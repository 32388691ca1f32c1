/*
 * totals: reduces a granule to its totals: without rows of single profiles, labels of samples and
 * timestamps.
 *
 * In a granule of deltas, each stack gets one row with its sum, as a row of the first profile;
 * profiles keep their begins and durations. In a granule of gauges or counters, all snapshots stay,
 * each with one row per stack: a snapshot of a gauge has the weight of the time until the next one,
 * the increase of a counter is the difference of two snapshots, and snapshots between these may be
 * in another block or arrive later. So sums, means and increases stay the same, whatever blocks the
 * parts of an hour were in when they were reduced. Private to store/.
 */
#ifndef STORE_MAINTAIN_TOTALS_H
#define STORE_MAINTAIN_TOTALS_H

#include "store/block/block_write.h"
#include "store/types.h"

struct arena;

/* Reduces rows that are sorted by stack and ordinal; the new columns are in arena. */
void totals_reduce(struct arena *arena, enum store_aggregation aggregation,
                   struct block_rows *rows);

#endif

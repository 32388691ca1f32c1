/*
 * totals: reduces a granule to its totals: without rows of single profiles, labels of samples and
 * timestamps.
 *
 * Of deltas and gauges, each stack has one row with its sum, as a row of the first profile;
 * profiles keep their begins, so that means are divided by the right number. Of counters, all
 * snapshots stay, each with one row per stack: what lies between two snapshots may be in another
 * block or arrive later, so none can be dropped. So the sums, means and gains of an hour stay the
 * same, whatever blocks its parts were in when they were reduced. Private to store/.
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

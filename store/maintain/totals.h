/*
 * totals: what is kept of a granule of which only totals are: no rows of single profiles, no labels
 * of samples, no moments.
 *
 * Of deltas and levels: of each stack one row, with what it has in the hour together, that is said
 * to be the first profile's; profiles keep their begins, so that means are divided by as many. Of
 * counters: all snapshots, each with one row for a stack. What lies between two snapshots can stand
 * in another block, or come later, so none is known to be needless. So an hour as a whole says what
 * it said before, whatever block its parts stood in when they were reduced.
 * Private to the room.
 */
#ifndef STORE_MAINTAIN_TOTALS_H
#define STORE_MAINTAIN_TOTALS_H

#include "store/block/block_write.h"
#include "store/store.h"

struct arena;

/* Of rows by stack and ordinal; what takes the place of their columns is in arena. */
void totals_reduce(struct arena *arena, enum store_aggregation aggregation,
                   struct block_rows *rows);

#endif

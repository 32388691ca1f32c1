/*
 * totals: what is kept of a granule of which only totals are: no rows of single profiles, no labels
 * of samples, no moments.
 *
 * Of deltas and levels: of each stack one row, with what it has in the hour together, that is said
 * to be the first profile's; profiles keep their begins, so that means are divided by as many. Of
 * counters: the first and last snapshot of each run in which no stack lost anything, since what
 * such a run gained is the difference of these two. So an hour as a whole says what it said before.
 * Private to the room.
 */
#ifndef STORE_TOTALS_H
#define STORE_TOTALS_H

#include "store/block_write.h"
#include "store/store.h"

struct arena;

/* Of rows by stack and ordinal; what takes the place of their columns is in arena. */
void totals_reduce(struct arena *arena, enum store_rule rule, struct block_rows *rows);

#endif

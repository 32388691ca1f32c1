/*
 * differences: what counters gained, told by the snapshots of one series in order of time.
 *
 * A snapshot is a number per stack, all since the process began. Between two snapshots a stack
 * gained their difference; where any stack has less than before, the process began anew and all
 * that the later snapshot has was gained. The first snapshot tells what was there already: it gains
 * nothing. Memory is of one series: its distinct stacks. Private to the room.
 */
#ifndef STORE_DIFFERENCES_H
#define STORE_DIFFERENCES_H

#include "store/stack_hashes.h"

#include <stdint.h>

struct block;
struct block_rows;

/* All rows of one series, stacks as numbers of a set that the caller keeps; zeros are ready. */
struct differences {
    struct difference_row *rows;
    uint64_t row_count;
    uint64_t row_capacity;
    int64_t *times_ns; /* of the snapshots, in the order in which they were added */
    uint32_t snapshot_count;
    uint32_t snapshot_capacity;
};

void differences_fini(struct differences *differences);

/* Adds the snapshots first <= ordinal < end of rows; they may be earlier than some that were added
 * before. numbers[i] is the number of the block's stack i. */
void differences_add(struct differences *differences, const struct block_rows *rows, uint32_t first,
                     uint32_t end, const uint32_t *numbers);

/* Adds what each stack gained to gains, by number. */
void differences_sum(struct differences *differences, int64_t *gains);

#endif

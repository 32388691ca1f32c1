/*
 * differences: what counters gained, told by the snapshots of one series in order of time.
 *
 * A snapshot is a number per stack, all since the process began; profiles of one moment are one
 * snapshot together, whatever blocks they are in and in which order. Between two snapshots a stack
 * gained their difference; where any stack has less than before, the process began anew and all
 * that the later snapshot has was gained. The first snapshot tells what was there already: it gains
 * nothing. Rows go to a key each, a stack with some labels or whatever the caller divides by; when
 * the process began is told by stacks alone, so that what keys divide adds up to the whole. Memory
 * is of one series: its rows. Private to the room.
 */
#ifndef STORE_QUERY_COUNTER_INCREASE_H
#define STORE_QUERY_COUNTER_INCREASE_H

#include "store/block/stack_hashes.h"

#include <stddef.h>
#include <stdint.h>

struct block;
struct block_rows;

/* Key of a row that only shows when its process began. */
#define COUNTER_INCREASE_LEFT_OUT UINT32_MAX

/* All rows of one series; zeros are ready. */
struct counter_increase {
    struct counter_row *rows;
    uint64_t row_count;
    uint64_t row_capacity;
    int64_t *times_ns; /* of the profiles, in the order in which they were added */
    uint32_t time_count;
    uint32_t time_capacity;
    struct stack_hash_set stacks;
};

void counter_increase_fini(struct counter_increase *increase);

/* Adds the profiles first <= ordinal < end of the block's rows; they may be earlier than some that
 * were added before. keys[i] is of row i. It costs what the rows are, whatever else the block has.
 */
void counter_increase_add(struct counter_increase *increase, const struct block *block,
                          const struct block_rows *rows, uint32_t first, uint32_t end,
                          const uint32_t *keys);

/* Once they were told: when the snapshots were, in order. */
const int64_t *counter_increase_times(const struct counter_increase *increase, uint32_t *ret_count);

size_t counter_increase_memory(const struct counter_increase *increase);

/* What a key gained from since_ns until the snapshot at time_ns. */
struct counter_gain {
    uint32_t key;
    int64_t since_ns;
    int64_t time_ns;
    int64_t value;
};

/*
 * Once, when all are added: calls covered (NULL: not wanted) for each snapshot but the first with
 * the time since the one before; where counters began anew, since then, or for the interval of the
 * snapshots there (store/query/cadence.h) where that is shorter: when the process began is not
 * known. Then calls gain for what each key gained until a snapshot, of all snapshots but the first
 * that it is in. Gains of one key and snapshot come one after the other.
 */
void counter_increase_compute(struct counter_increase *increase,
                              void (*covered)(void *context, int64_t since_ns, int64_t time_ns),
                              void (*gain)(void *context, const struct counter_gain *gained),
                              void *context);

#endif

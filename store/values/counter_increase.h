/*
 * counter_increase: the counter deltas of one series: the increases between consecutive snapshots.
 *
 * A snapshot is a number per stack, counted since the process began. Profiles with equal times are
 * one snapshot, whatever blocks they are in and in which order they are added. The increase of a
 * stack between two snapshots is the difference of its numbers. If any stack has a lower value than
 * before, the process has restarted between the two, and the increase of each stack is its whole
 * value in the later snapshot; unless snapshots of two processes or clocks are mixed: then each
 * increase is that since the snapshot that it continues (snapshot_chains). The first snapshot of
 * each of these chains has no increase: it is the starting point.
 *
 * Each row has a key chosen by the caller, such as a stack with some labels. Restarts are detected
 * by stack, so that the increases of all keys add up to the whole.
 *
 * Example, one key per stack:
 *   time  a  b   restarted  delta a  delta b
 *   0     5  1
 *   10    8  1   no         3       0
 *   20    2  4   yes (a)    2       4
 *
 * Memory: the rows of one series. Private to store/.
 */
#ifndef STORE_VALUES_COUNTER_INCREASE_H
#define STORE_VALUES_COUNTER_INCREASE_H

#include "store/block/stack_hashes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block;
struct block_rows;

/* Key of a row that is only used to detect restarts. */
#define COUNTER_INCREASE_LEFT_OUT UINT32_MAX

/* Only increases have a limit: the sum of all snapshots may be any number. */
#define COUNTER_INCREASE_MAX (UINT64_C(1) << 62)

/* All rows of one series. All zeros: empty. counter_increase_compute sets the last three members.
 */
struct counter_increase {
    struct counter_row *rows;
    uint64_t row_count;
    uint64_t row_capacity;
    int64_t *times_ns; /* of the profiles, in the order in which they were added */
    uint32_t time_count;
    uint32_t time_capacity;
    struct stack_hash_set stacks;
    /* The window of the query; both 0: all times. Snapshots that are more than CADENCE_NEIGHBOURS
     * away from it do not count, since only some of them may have been added. */
    int64_t start_ns;
    int64_t end_ns;
    /* The sum of the absolute values of all increases. The caller sets it to that of the series
     * before. */
    uint64_t magnitude;
    bool overflows;      /* magnitude would reach COUNTER_INCREASE_MAX: the other increases are
                            missing */
    bool restarts_often; /* more than three, in over a quarter of the snapshots */
};

void counter_increase_fini(struct counter_increase *increase);

/* Adds the profiles first <= ordinal < end of the block's rows; they may be earlier than some that
 * were added before. keys[i] is the key of row i. Cost: the rows, whatever else the block has. */
void counter_increase_add(struct counter_increase *increase, const struct block *block,
                          const struct block_rows *rows, uint32_t first, uint32_t end,
                          const uint32_t *keys);

/* After counter_increase_compute: the times of the snapshots, ascending. */
const int64_t *counter_increase_times(const struct counter_increase *increase, uint32_t *ret_count);

/* Bytes of memory in use. */
size_t counter_increase_memory(const struct counter_increase *increase);

/* The increase of a key from since_ns until the snapshot at time_ns. */
struct counter_delta {
    uint32_t key;
    int64_t since_ns;
    int64_t time_ns;
    int64_t value;
};

/*
 * Called once, after all profiles are added. Calls covered (NULL: not needed) for each snapshot
 * that has an increase, with the time since the one that it continues. After a restart that time
 * is at most the interval of the snapshots there (store/values/cadence.h), since the process began
 * at an unknown time in between. Then calls add with the increase of each key for each snapshot
 * but the first that the key is in. Increases of one key and snapshot are adjacent.
 */
void counter_increase_compute(struct counter_increase *increase,
                              void (*covered)(void *context, int64_t since_ns, int64_t time_ns),
                              void (*add)(void *context, const struct counter_delta *delta),
                              void *context);

#endif

/*
 * aggregation: how values of several profiles of one series become one, by the series' type.
 *
 * Deltas describe what happened during a profile and are summed. Snapshots of gauges (heap in use,
 * V8's space and objects, live objects, goroutines, threads, and what senders declare) hold until
 * the next one of their series: their sum over series is averaged over the time that any of them
 * covers, and rounded once. Counters since the process began (Go's alloc_*, contentions, delay and
 * threadcreate without "delta") count by the differences of consecutive snapshots; the part of a
 * difference inside the window counts. Profiles of such a series with equal times are one snapshot,
 * in lists of profiles, means and differences.
 */
#ifndef STORE_BLOCK_AGGREGATION_H
#define STORE_BLOCK_AGGREGATION_H

#include "store/store.h"

struct dictionary;

enum store_aggregation aggregation_of_type(const struct dictionary *dictionary, uint32_t series);

#endif

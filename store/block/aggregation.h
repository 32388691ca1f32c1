/*
 * aggregation: the rule by which values of several profiles of one series are combined; the type of
 * the series decides.
 *
 * Deltas describe what happened during a profile and are summed. Snapshots of gauges (heap in use,
 * V8's space and objects, live objects, goroutines, threads, and value types that sources declare
 * as gauges) hold until the next one of their series: their sum over series is averaged over the
 * time that any of them covers, and rounded once. Counters since the process began (Go's alloc_*,
 * contentions, delay and threadcreate without "delta") count by their counter deltas, the increases
 * between consecutive snapshots; the part of a counter delta inside the window counts. Profiles of
 * a gauge or counter series with equal times are one snapshot, in lists of profiles, means and
 * counter deltas.
 */
#ifndef STORE_BLOCK_AGGREGATION_H
#define STORE_BLOCK_AGGREGATION_H

#include "store/types.h"

struct dictionary;

enum store_aggregation aggregation_of_type(const struct dictionary *dictionary, uint32_t series);
/* "sum", "mean" or "difference", as in the API. */
const char *aggregation_name(enum store_aggregation aggregation);

#endif

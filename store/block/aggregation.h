/*
 * rule: how values of several profiles of one series become one, by what they are.
 *
 * Deltas tell what happened in their time and are summed. Snapshots of a level (heap in use, V8's
 * space and objects, live objects, goroutines, threads) hold until the next one of their series:
 * their sum over series is averaged over the time that any of them covers, and rounded once.
 * Counters since the process began (Go's alloc_*, contentions, delay and threadcreate without
 * "delta") are told by the differences of consecutive snapshots, of which a window has the part
 * inside. What a series has at one moment is one snapshot, however many profiles
 * brought it: so in the list of single profiles, in means and in differences.
 */
#ifndef STORE_BLOCK_AGGREGATION_H
#define STORE_BLOCK_AGGREGATION_H

#include "store/store.h"

struct dictionary;

enum store_aggregation aggregation_of_type(const struct dictionary *dictionary, uint32_t series);

#endif

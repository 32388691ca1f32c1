/*
 * view_memory: computes the memory that a view and a report of it need, before they are made.
 *
 * The tables of a view grow with what a profile contains, not with the samples that a report shows:
 * a profile of 10 MB may have millions of locations, and each becomes a frame with a name of its
 * own. A caller that has a budget reads the number first. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_VIEW_MEMORY_H
#define LIB_PROFILE_REPORT_VIEW_MEMORY_H

#include "lib/base/span.h"

#include <stdint.h>

struct profile;

/* An upper bound, in bytes, for one side of a view that is grouped by group_by (view.h) and for one
 * report made from it, without the nodes of a flame graph and without the bytes that are written.
 * It takes a few nanoseconds per location, line and stack entry. */
uint64_t view_memory_bytes(const struct profile *profile, struct span group_by);
/* The part of it for the stacks. A rule chain (rule_chain.h) makes them a second time. */
uint64_t view_memory_stack_bytes(const struct profile *profile);
/* The depth to which a view of the profile, without filters, cuts its stacks (VIEW_DEPTH_MAX).
 * *ret_entries: the entries of all stacks then, with their inlined calls and marks of cuts. */
uint64_t view_memory_depth(const struct profile *profile, uint64_t *ret_entries);

#endif

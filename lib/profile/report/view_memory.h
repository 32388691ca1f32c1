/*
 * view_memory: computes the memory that a view and a report of it need, before they are made.
 *
 * The tables of a view grow with the tables of the profile, not with the samples that a report
 * shows: a profile of 10 MB may have millions of locations, and each becomes a frame with a name of
 * its own. A caller that has a budget computes this number first. Threads: any.
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
/* The part of view_memory_bytes for the stacks. A rule chain (rule_chain.h) needs it once more. */
uint64_t view_memory_stack_bytes(const struct profile *profile);
/* The depth to which a view of the profile, without filters, cuts its stacks (see VIEW_ENTRIES_MAX
 * in view.h). *ret_entries: the entries of all stacks then, including the frames that report a cut.
 */
uint64_t view_memory_depth(const struct profile *profile, uint64_t *ret_entries);

#endif

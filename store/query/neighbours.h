/*
 * neighbours: which snapshots outside the window of a query count, series by series.
 *
 * What a snapshot before the window holds, and what a counter gains across the window's edges, is
 * known from the CADENCE_NEIGHBOURS nearest moments on each side. A query that wants them runs with
 * a reach (store_query's reach_ns and ahead_ns, which are the same then), and again with a longer
 * one when more of them may lie beyond it. The same for deltas without a duration.
 * Threads: an object belongs to one thread. Private to store/.
 */
#ifndef STORE_QUERY_NEIGHBOURS_H
#define STORE_QUERY_NEIGHBOURS_H

#include "lib/base/clock.h"
#include "store/query/cadence.h"
#include "store/query/scan.h"

/* How far they are looked for first, and for those of a series that has one moment in all. */
#define NEIGHBOURS_REACH_NS (3600 * CLOCK_NS_PER_S)
#define NEIGHBOURS_REACH_MAX_NS (86400 * CLOCK_NS_PER_S)

/* What is outside the window and nearest to one of its edges: distinct times, the nearest first. */
struct neighbours_edge {
    int64_t times_ns[CADENCE_NEIGHBOURS];
    int count;
};

struct neighbours {
    struct scan *scan;
    int64_t wanted_reach_ns;              /* of all series so far; 0: the reach was enough */
    struct neighbours_edge before, after; /* of the series in hand */
};

void neighbours_init(struct neighbours *neighbours, struct scan *scan);
void neighbours_begin_series(struct neighbours *neighbours);

/* A profile of the series was read, in the window or outside. */
void neighbours_note(struct neighbours *neighbours, int64_t time_ns);

/* Tasks that lie outside the window are read only as neighbours. */
static inline bool neighbours_is_unread(const struct scan_task *task)
{
    return task->is_broken || (task->is_neighbour && !task->is_needed);
}

/*
 * The next of the series' tasks (begin <= i < end) outside the window that has neighbours on one
 * side, from the window's edge outwards; its profiles are the needed ones, of which there may be
 * none. NULL: there are enough, or no more. To be called until then; what is read is to be noted
 * between the calls. Handles: as scan_note_read.
 */
enum err_code neighbours_next(struct neighbours *neighbours, struct scan_task *tasks,
                              uint32_t begin, uint32_t end, bool is_before,
                              struct scan_task **ret_task) MUST_USE;

/* All that was read of the series: ascending, distinct. */
void neighbours_end_series(struct neighbours *neighbours, const int64_t *times_ns, uint32_t count);

/* Sets a reach of at least so much; false: the query had it already. */
bool neighbours_extend(struct store_query *query, int64_t reach_ns);

#endif

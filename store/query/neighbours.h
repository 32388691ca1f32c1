/*
 * neighbours: finds the snapshots outside the window that a query needs, series by series.
 *
 * The CADENCE_NEIGHBOURS nearest times on each side of the window determine the contribution of a
 * snapshot before the window and the increase of a counter across the window's edges. A query that
 * needs these neighbours scans again with a reach in both directions (reach_ns and ahead_ns of
 * store_query). For gauges and counters the reach is a day, because the interval of one series does
 * not determine that of another. For deltas without a duration it is an hour, and the query scans
 * again with a longer one if some of the neighbours may lie beyond it.
 *
 * Granules are read from the window's edge outwards until there are enough times. Those of a series
 * that has no part in the window are not read at all.
 *
 * Example: a window from 10:00 to 10:05 of a gauge sent every 10 minutes, at 9:38, 9:48, 9:58 and
 * so on. Three times are read on each side; 9:58 holds until 10:08 and gives the window its value.
 *
 * Threads: an object belongs to one thread. Private to store/.
 */
#ifndef STORE_QUERY_NEIGHBOURS_H
#define STORE_QUERY_NEIGHBOURS_H

#include "lib/base/clock.h"
#include "store/query/scan.h"
#include "store/values/cadence.h"

/* The reach for deltas at first, and the longest reach, which is that for gauges and counters. */
#define NEIGHBOURS_REACH_NS (3600 * CLOCK_NS_PER_S)
#define NEIGHBOURS_REACH_MAX_NS (86400 * CLOCK_NS_PER_S)

/* The nearest times outside one edge of the window: distinct, the nearest first. */
struct neighbours_edge {
    int64_t times_ns[CADENCE_NEIGHBOURS];
    int count;
};

struct neighbours {
    struct scan *scan;
    const struct store_query *query;
    int64_t wanted_reach_ns; /* the longest that a series so far needs; 0: the reach is enough */
    struct neighbours_edge before, after; /* of the current series */
};

void neighbours_init(struct neighbours *neighbours, struct scan *scan);
void neighbours_begin_series(struct neighbours *neighbours);

/* Records that a profile of the series was read, inside or outside the window. */
void neighbours_note(struct neighbours *neighbours, int64_t time_ns);

/* False if the series has only tasks outside the window, none of which has a part in it: they need
 * not be read. The tasks of the series are begin <= i < end. */
bool neighbours_can_matter(const struct neighbours *neighbours, const struct scan_task *tasks,
                           uint32_t begin, uint32_t end);

/* True for tasks that are not read: broken ones, and neighbours that are not needed. */
static inline bool neighbours_is_unread(const struct scan_task *task)
{
    return task->is_broken || (task->is_neighbour && !task->is_needed);
}

/*
 * Finds the next of the series' tasks (begin <= i < end) outside one side of the window that may
 * have neighbours, from the edge outwards, and sets its range to the needed profiles, which may be
 * empty. Call it repeatedly, each time after neighbours_note was called for the task's profiles,
 * until *ret_task is NULL: enough neighbours are known, or there are no more tasks. Errors: as
 * scan_note_read.
 */
enum err_code neighbours_next(struct neighbours *neighbours, struct scan_task *tasks,
                              uint32_t begin, uint32_t end, bool is_before,
                              struct scan_task **ret_task) MUST_USE;

/* Ends a series of deltas and updates wanted_reach_ns. times_ns: the starts of all its profiles
 * without a duration that were read, ascending and distinct. */
void neighbours_end_series(struct neighbours *neighbours, const int64_t *times_ns, uint32_t count);

/* Whether the window has a part of the series: it has a snapshot, or snapshots on both sides. */
bool neighbours_reach_window(const struct neighbours *neighbours, const int64_t *times_ns,
                             uint32_t count);

/* Extends the query's reach to at least reach_ns; false: the reach was that long already. */
bool neighbours_extend(struct store_query *query, int64_t reach_ns);

#endif

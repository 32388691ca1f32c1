/*
 * weights: for how much of a window each snapshot of gauges holds.
 *
 * The average of several series of gauges is the integral of their sum divided by the time that any
 * of them covers, as values over time have it (store/query/spread.h): a snapshot counts with the
 * time for which it holds (store/query/cadence.h) inside the window. Most granules have snapshots
 * at equal distances, so that their sums are enough. Threads: as the walk. Private to store/.
 */
#ifndef STORE_QUERY_WEIGHTS_H
#define STORE_QUERY_WEIGHTS_H

#include "store/query/scan.h"

/* Distances that differ by at most this part are equal. */
enum { WEIGHTS_EVEN_PART = 1024 };

/* Of a task: its profiles first <= ordinal < end hold in the window; none: first == end. */
struct weight {
    int64_t *holds_ns; /* per profile from the task's own first on */
    uint32_t first;
    uint32_t end;
    bool is_even; /* each of the task's profiles counts as long as the others */
    double mean_ns;
};

struct weights {
    struct weight *tasks;    /* per task of the walk */
    uint64_t covered_ns;     /* by any series */
    uint64_t magnitude;      /* of all values that count, below 2^63 */
    int64_t wanted_reach_ns; /* of store/query/neighbours.h */
};

/* Puts the walk's tasks in order of series, and reads the profiles of all and their neighbours. In
 * the walk's arena. Handles: as scan_note_read. */
enum err_code weights_find(struct scan *scan, struct weights *ret_weights) MUST_USE;

#endif

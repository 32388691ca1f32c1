/*
 * weights: the part of a window for which each snapshot of a gauge holds.
 *
 * The average of several series of gauges is the integral of their sum divided by the time that any
 * of them covers, as for values over time (store/values/spread.h): a snapshot counts with the time
 * for which it holds (store/values/cadence.h) inside the window. The snapshots of most granules are
 * equally far apart; for these the totals of the granule are enough.
 *
 * Example: a window of 60 s with snapshots 4 at 0 s and 8 at 40 s, and a series with 6 from 20 s
 * on. The weights are 40 s, 20 s and 40 s, the covered time is 60 s, and the average is (4 * 40 + 8
 * * 20 + 6 * 40) / 60 = 9.3.
 *
 * Threads: as the scan. Private to store/.
 */
#ifndef STORE_QUERY_WEIGHTS_H
#define STORE_QUERY_WEIGHTS_H

#include "store/query/scan.h"

/* Times for which snapshots hold count as equal if they differ by at most 1/1024. */
enum { WEIGHTS_EVEN_PART = 1024 };

/*
 * The weight of a task. The profiles first <= ordinal < end hold in the window; first == end: none
 * does.
 */
struct weight {
    int64_t *holds_ns; /* per profile of the task: the time for which it holds in the window */
    uint32_t first;
    uint32_t end;
    bool is_even; /* all of the task's profiles count equally long */
    double mean_ns;
};

struct weights {
    struct weight *tasks; /* per task of the scan */
    uint64_t covered_ns;  /* the time that any series covers */
    uint64_t magnitude;   /* upper bound of the sum of all values that count; below 2^63 */
};

/* Sorts the scan's tasks by series, reads the profiles of all and their neighbours, and computes
 * the weights, in the scan's arena. Errors: as scan_note_read. */
enum err_code weights_find(struct scan *scan, struct weights *ret_weights) MUST_USE;

#endif

/*
 * range_result: converts the sums of a query of values over time to its result: a series of points
 * per chosen group, one series of all other groups, averages over the covered time, and whole
 * numbers that add up (store/values/apportion.h).
 *
 * Threads: an object belongs to the thread of its query. Private to store/.
 */
#ifndef STORE_QUERY_RANGE_RESULT_H
#define STORE_QUERY_RANGE_RESULT_H

#include "store/query/range_groups.h"
#include "store/query/row_labels.h"
#include "store/query/scan.h"
#include "store/values/spread.h"

/* The sums of range_query; all pointers are borrowed. */
struct range_sums {
    const struct store_range_query *query;
    enum store_aggregation aggregation;
    const struct spread_steps *steps;
    uint32_t step_count;
    const struct range_groups *groups; /* after range_groups_choose */
    const struct row_labels *labels;   /* the labels of the groups */
    int64_t *intervals_ns;             /* of series with a known interval; gets sorted */
    uint32_t interval_count;
    uint64_t unknown_count; /* profiles of the window without a duration */
    uint32_t crowded_count; /* as in struct store_range */
    double lacking_part;    /* likewise */
    uint32_t single_count;  /* likewise */
};

/* The text of a label of a group; empty if the group lacks it. */
struct span range_result_find_label(const struct row_labels *labels, uint32_t group,
                                    struct span name);

/* The result is in scan->arena. Its type is NULL when the window has no data. */
void range_result_make(struct scan *scan, const struct range_sums *sums,
                       struct store_range *ret_result);

#endif

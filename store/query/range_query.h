/*
 * range_query: values over time, one number per group of series and step.
 * store/values/values-over-time.md explains the rules, store/store.h the result (store_range).
 *
 * Without a filter, profiles are read and no rows: a profile stores the sum of its values. With a
 * filter, the rows of kept stacks are read. Rows are also read where they have labels of their own
 * and the query names labels, and of counters, which restarted where any stack has less than before
 * (store/values/counter_increase.h): so steps add up to what a merge gives. A group has a value in
 * each step where it has a row, whether focus and ignore keep it or not. Private to store/.
 */
#ifndef STORE_QUERY_RANGE_QUERY_H
#define STORE_QUERY_RANGE_QUERY_H

#include "store/types.h"

struct scan_source;

enum err_code range_query_run(const struct scan_source *source, struct arena *arena,
                              const struct store_range_query *query, struct store_range *ret_range,
                              struct err *err) MUST_USE;

#endif

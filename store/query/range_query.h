/*
 * range: values over time: of each group of series, a number per step.
 *
 * Without a filter profiles are read and no rows: what a profile's values add up to is kept with
 * it. With one, the rows whose stack it keeps. Rows are also read where they have labels of their
 * own and the question has labels, and of counters: those began anew where any stack has less than
 * before (store/query/counter_increase.h), so that steps add up to what a merge of them says. A
 * group is in a step where a row of it is, whatever focus and ignore keep of it. Private to the
 * room; store/store.h describes what it does (store_range).
 */
#ifndef STORE_QUERY_RANGE_QUERY_H
#define STORE_QUERY_RANGE_QUERY_H

#include "store/store.h"

struct scan_source;

enum err_code range_query_run(const struct scan_source *source, struct arena *arena,
                              const struct store_range_query *query, struct store_range *ret_range,
                              struct err *err) MUST_USE;

#endif

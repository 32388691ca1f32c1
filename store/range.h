/*
 * range: values over time: of each group of series, a number per step.
 *
 * Without a filter profiles are read and no rows: what a profile's values add up to is kept with
 * it. With one, the rows whose stack it keeps. Counters began anew where the whole of a snapshot is
 * less than that before, filter or not: so what filters divide adds up to the whole. Private to the
 * room; store/store.h describes what it does (store_range).
 */
#ifndef STORE_RANGE_H
#define STORE_RANGE_H

#include "store/store.h"

struct walk_source;

enum err_code range_make(const struct walk_source *source, struct arena *arena,
                         const struct store_range_query *query, struct store_range *ret_range,
                         struct err *err) MUST_USE;

#endif

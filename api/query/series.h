/*
 * series: lists of what the store has in a window: profile types, series, and the names and values
 * of their labels.
 *
 * Each response is {"data": […], "next": …}, ordered by bytes, `limit` rows of it; `next` is the
 * value of `after` for the following ones, null at the end. `match[]` are selectors: what any of
 * them finds, by default everything. The window is that of api/query/query.h.
 */
#ifndef API_QUERY_SERIES_H
#define API_QUERY_SERIES_H

#include "api/http/route.h"

extern const struct route_table series_routes;

#endif

/*
 * series: what the store has in a window: profile types, series, and the names and values of their
 * labels; for lists to choose from.
 *
 * Each answer is {"data": […], "next": …}, ordered by bytes, `limit` rows of it; `next` is what
 * `after` must be for those that follow, null at the end. `match[]` are selectors: what any of them
 * finds, else all there is. The window is that of api/query/query.h.
 */
#ifndef API_QUERY_SERIES_H
#define API_QUERY_SERIES_H

#include "api/http/route.h"

extern const struct route_table series_routes;

#endif

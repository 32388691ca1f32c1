/*
 * series: lists the profile types in a window of the store, its series, and the names and values of
 * their labels.
 *
 * Each response is {"data": […], "next": …} with at most `limit` rows, ordered by bytes; `next` is
 * the value of the parameter `after` for the rows that follow, null at the end. `match[]` are
 * selectors: the lists contain the data of series that any of them matches, without `match[]` of
 * all series. The window is that of api/query/query.h.
 */
#ifndef API_QUERY_SERIES_H
#define API_QUERY_SERIES_H

#include "api/http/route.h"

extern const struct route_table series_routes;

#endif

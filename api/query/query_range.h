/*
 * query_range: values over time: GET /api/v1/query_range.
 *
 * `step` is a duration (lib/input/time_parse.h); the default is a round one that gives at most 250
 * points. `group_by` names labels; each combination of their values is one series of points. With
 * `focus` and `ignore`, only the stacks that they keep count (lib/profile/report/filter.h). With
 * `rate=true` values are per second of the time that has data, those in nanoseconds as seconds per
 * second: for CPU time that is cores; `rate=auto` does so only for types that are not gauges.
 * Values are spread over the time that they cover
 * (store/values/values-over-time.md), each series has its average and total, and `notes` explains a
 * step that is longer than the requested one. If there are more than `limit` series, the largest
 * are returned, and the sum of all others as one more series without labels unless `other` is
 * false.
 */
#ifndef API_QUERY_QUERY_RANGE_H
#define API_QUERY_QUERY_RANGE_H

#include "api/http/route.h"

extern const struct route_table query_range_routes;

#endif

/*
 * query_diff: comparisons, GET /api/v1/diff, /diff/top and /diff/labels. Each side is a share (a,
 * b) or a query (a_query, a_start, a_end; b_query, b_start, b_end), which takes SCOPE_READ.
 *
 * A query without a window has that of the other side's query, and without that the last hour. What
 * is made of a query is neither kept nor shared: the next answer may have more profiles. Two shares
 * are compared as api/share/share_report.h says.
 */
#ifndef API_QUERY_QUERY_DIFF_H
#define API_QUERY_QUERY_DIFF_H

#include "api/http/route.h"

extern const struct route_table query_diff_routes;

#endif

/*
 * query_diff: comparisons, GET /api/v1/diff, /diff/top and /diff/labels. Each side is a share (a,
 * b) or a query (a_query, a_start, a_end; b_query, b_start, b_end), which needs SCOPE_READ.
 *
 * A query without a window has that of the other side's query, or the last hour. A comparison with
 * a query is neither cached nor shared: the next result may include more profiles. Two shares are
 * compared as api/share/share_report.h describes.
 */
#ifndef API_QUERY_QUERY_DIFF_H
#define API_QUERY_QUERY_DIFF_H

#include "api/http/route.h"

extern const struct route_table query_diff_routes;

#endif

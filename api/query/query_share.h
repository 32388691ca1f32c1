/*
 * query_share: POST /api/v1/shares?query=…&start=…&end=…: the result of a query, stored as a share.
 *
 * The share's bytes are the merged profile as pprof; its comments contain the query, the window,
 * the type, the aggregation rule, and the data that was missing. Without a title it gets the one of
 * query_title.h. Settings, quotas and Idempotency-Key are as for uploaded profiles. Needs
 * SCOPE_READ and SCOPE_SHARE. Without the parameter query, the body is the profile
 * (share_routes_create).
 */
#ifndef API_QUERY_QUERY_SHARE_H
#define API_QUERY_QUERY_SHARE_H

#include "api/http/route.h"

extern const struct route_table query_share_routes;

#endif

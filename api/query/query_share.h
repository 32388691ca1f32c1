/*
 * query_share: POST /api/v1/shares?query=…&start=…&end=…: the result of a query, kept as a share.
 *
 * The share's bytes are the merged profile as pprof; its comments contain query, window, type and
 * rule, and what was missing. Without a title it gets that of query_title.h. Everything else,
 * including settings, quotas and Idempotency-Key, is as for uploaded profiles. Needs SCOPE_READ and
 * SCOPE_SHARE. Without a query the body is the profile (share_handle_create).
 */
#ifndef API_QUERY_QUERY_SHARE_H
#define API_QUERY_QUERY_SHARE_H

#include "api/http/route.h"

extern const struct route_table query_share_routes;

#endif

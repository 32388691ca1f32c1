/*
 * query_share: POST /api/v1/shares?query=…&start=…&end=…: the answer of a query, kept as a share.
 *
 * The share's bytes are the merged profile as pprof; its comments tell query, window, type and
 * rule, and what was missing. Without a title it gets that of query_title.h. All else, settings,
 * quotas and Idempotency-Key included, is as with profiles that are uploaded. Needs SCOPE_READ
 * beside SCOPE_SHARE.
 */
#ifndef API_QUERY_QUERY_SHARE_H
#define API_QUERY_QUERY_SHARE_H

#include "api/http/request.h"

/* Does the request ask for this? */
bool query_share_is_wanted(const struct request *request);
/* Handles: ERR_INVALID (also: no sample is found), ERR_UNAUTHENTICATED, ERR_FORBIDDEN, and what
 * share_create_once does. */
enum err_code query_share_handle(struct request *request, struct response *response,
                                 struct err *err) MUST_USE;

#endif

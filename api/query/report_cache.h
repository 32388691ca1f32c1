/*
 * report_cache: complete reports of queries, in the form in which they are sent, for equal queries
 * of the same team.
 *
 * Before it computes a result, the store reports what the result is computed from (struct
 * store_result), which is the key; so no report outlives its data. Single flight. Threads: any.
 */
#ifndef API_QUERY_REPORT_CACHE_H
#define API_QUERY_REPORT_CACHE_H

#include "api/report/report.h"
#include "store/store.h"

struct report_cache;

struct report_cache *report_cache_create(size_t max_bytes);
void report_cache_destroy(struct report_cache *report_cache); /* NULL is a no-op */
size_t report_cache_bytes(struct report_cache *report_cache);

/* One requested report; lives in the request's arena. */
struct report_request;
struct report_request *report_request_create(struct request *request, const struct report *report);
/* Ends the query as soon as it is known that the report is cached. */
void report_request_watch(struct report_request *wanted, struct store_query *query);

/* Responds with the cached report, or computes it from the result's profile; adds the fields that
 * describe the result. Handles: what report_write_profiles does. */
enum err_code report_request_respond(struct report_request *wanted, struct response *response,
                                     const struct store_result *result, int64_t begin_ns,
                                     struct err *err) MUST_USE;

/* What was read for the result that report_request_respond sent, which may be a cached one. */
const struct store_statistics *report_request_statistics(const struct report_request *wanted);

#endif

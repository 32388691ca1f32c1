/*
 * report_cache: complete reports of queries, in the form in which they are sent, for equal queries
 * of the same team.
 *
 * Before it computes a result, the store reports the identity of the data that it is computed from
 * (struct store_result). That identity is part of the key, so a report is not used for other data.
 * One request computes a report while equal ones wait for it. Threads: any.
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
struct report_cache_request;
struct report_cache_request *report_cache_create_request(struct request *request,
                                                         const struct report *report);
/* Makes the query end early, without a merged profile, if the report of its data is cached. Call it
 * before query_merge. */
void report_cache_watch(struct report_cache_request *wanted, struct store_query *query);

/* Responds with the cached report, or computes it from the result's profile; adds the fields that
 * describe the result. begin_ns: the start of the query, of the monotonic clock. Errors: those
 * of report_write_profiles. */
enum err_code report_cache_respond(struct report_cache_request *wanted, struct response *response,
                                   const struct store_result *result, int64_t begin_ns,
                                   struct err *err) MUST_USE;

/* The statistics of the query whose result report_cache_respond sent. If the report was cached,
 * that is the query for which it was computed. */
const struct store_statistics *report_cache_statistics(const struct report_cache_request *wanted);

#endif

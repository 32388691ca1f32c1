/*
 * query_answers: finished reports of questions to the store, in the form in which they are sent,
 * for whoever of the team asks the same again.
 *
 * The store says what an answer is known by (struct store_result) each time it has looked what is
 * to be read, so no report outlives what it was made of. Single flight. Threads: any.
 */
#ifndef API_QUERY_REPORT_CACHE_H
#define API_QUERY_REPORT_CACHE_H

#include "api/report/report.h"
#include "store/store.h"

struct report_cache;

struct report_cache *report_cache_create(size_t max_bytes);
void report_cache_destroy(struct report_cache *answers); /* NULL is a no-op */
size_t report_cache_bytes(struct report_cache *answers);

/* One report that is asked for; lives in the request's arena. */
struct report_request;
struct report_request *report_request_create(struct request *request, const struct report *report);
/* Makes the query end as soon as it is known that the report is there. */
void report_request_watch(struct report_request *ask, struct store_query *query);

/*
 * Responds with the report that is there, or makes it of the answer's profile; adds the fields that
 * tell how the answer was made. Handles: what report_write_profiles does.
 */
enum err_code report_request_respond(struct report_request *ask, struct response *response,
                                     const struct store_result *answer, int64_t begin_ns,
                                     struct err *err) MUST_USE;

/* What was read for the answer that report_request_respond sent, which may be one that was kept. */
const struct store_statistics *report_request_statistics(const struct report_request *ask);

#endif

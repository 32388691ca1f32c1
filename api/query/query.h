/*
 * query: reads a query of the store (store/store.h) from the parameters of a request, and runs it.
 *
 * The window contains the profiles that begin at start or later and before end. start and end have
 * the forms of lib/input/time_parse.h; the default is the last hour.
 */
#ifndef API_QUERY_QUERY_H
#define API_QUERY_QUERY_H

#include "api/http/request.h"

struct report;
struct store_result;
struct store_query;

/* The names span_selector and trace_id_selector. query_read_labels also reads label, which every
 * report accepts. */
extern const char *const query_id_parameters[]; /* NULL at the end */

/* The names of one query's parameters, for one side of a diff for example a_query, a_start, a_end.
 */
struct query_parameters {
    const char *query;
    const char *start;
    const char *end;
};
extern const struct query_parameters query_parameters; /* query, start and end */

/* Sets the tenant, its limits and the window of the query, after it has taken a concurrency slot of
 * the tenant. Errors: ERR_INVALID, ERR_BUSY (no slot is free: the server handles a GET again
 * later; other requests get 503), and those of tenant_limits_get. */
enum err_code query_read_window(struct request *request, const struct query_parameters *names,
                                struct store_query *ret_query, struct err *err) MUST_USE;
/* Reads the selectors in the parameters match[]. The query finds the series that any of them
 * matches; without match[], all series. Errors: ERR_INVALID (too many selectors). */
enum err_code query_read_matches(const struct request *request, struct store_query *query,
                                 struct err *err) MUST_USE;
/* Reads a query of the request's tenant from the parameters in names. If the request has neither
 * names->start nor names->end, the window is that of others->start and others->end, unless others
 * is NULL. Does not check access. Errors: ERR_INVALID (the message names the parameter). */
enum err_code query_read(struct request *request, const struct query_parameters *names,
                         const struct query_parameters *others, struct store_query *ret_query,
                         struct err *err) MUST_USE;
/* Reads the three parameters that select samples, each of which may be repeated: label
 * (lib/profile/report/label_filter.h), and the ids span_selector and trace_id_selector.
 * Errors: ERR_INVALID (the message names the parameter). */
enum err_code query_read_labels(const struct request *request, struct store_query *query,
                                struct err *err) MUST_USE;
/* Adds what the report needs: the form of names, the labels that it groups by or counts, and its
 * memory. report must live as long as query. */
void query_prepare_report(const struct request *request, const struct report *report,
                          struct store_query *query);
/* As store_merge; the caller ends with store_result_fini. */
enum err_code query_merge(const struct request *request, const struct store_query *query,
                          struct store_result *ret_result, struct err *err) MUST_USE;

/* Limits the time to compute a report of the query's result: query and report together may take the
 * time that the query's limits allow. */
void query_limit_report(const struct store_query *query, struct report *report);
/* A report that is stopped by query_limit_report returns ERR_TOO_LARGE. If the time has passed,
 * this function turns ERR_TOO_LARGE into ERR_LIMIT with the name of the limit; it returns any other
 * code unchanged. */
enum err_code query_explain_report_limit(const struct store_query *query, enum err_code code,
                                         struct err *err) MUST_USE;

#endif

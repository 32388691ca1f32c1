/*
 * query: queries of the store (store/store.h) over HTTP: the profiles that a selector finds in a
 * window, as any report that shares have; and one profile of a list (api/query/profile_list.h), as
 * it was sent.
 *
 * The window is start <= begin of a profile < end; both in the forms of lib/base/time_parse.h, the
 * last hour by default. Reports and their parameters are those of shares (api/report/report.h).
 * Header fields describe the result: Perfolio-Profile-Type, Perfolio-Rule (sum, mean, difference),
 * Perfolio-Statistics (what was read), and Perfolio-Warning if stored data is broken and the result
 * lacks it.
 */
#ifndef API_QUERY_QUERY_H
#define API_QUERY_QUERY_H

#include "api/http/route.h"

struct arena;
struct report;
struct store_result;
struct store_query;
struct store_statistics;

/* The parameters of query_read_labels except label, which reports have too. */
extern const char *const query_id_selectors[]; /* NULL at the end */

/* The parameters of one query: query, start and end, or those of one side of a diff. */
struct query_names {
    const char *query;
    const char *start;
    const char *end;
};
extern const struct query_names query_names;

/* Reads the tenant, its limits and the window. For a GET it takes a slot of the tenant first.
 * Handles: ERR_INVALID, ERR_BUSY (it is handled again later). */
enum err_code query_read_window(struct request *request, const struct query_names *names,
                                struct store_query *ret_query, struct err *err) MUST_USE;
/* The selectors of the parameters `match[]`: the series that any of them finds; without one, all
 * series. Handles: ERR_INVALID (too many). */
enum err_code query_read_matches(const struct request *request, struct store_query *query,
                                 struct err *err) MUST_USE;
/* Reads a query of the request's tenant. Without start and end it has the window of others, which
 * may be NULL. Does not check access. Handles: ERR_INVALID (the message names the parameter). */
enum err_code query_read(struct request *request, const struct query_names *names,
                         const struct query_names *others, struct store_query *ret_query,
                         struct err *err) MUST_USE;
/* Selects samples by their labels: the parameter label (lib/profile/report/label_filter.h), and by
 * ids of spans and traces span_selector and trace_id_selector, each of which may be repeated.
 * Handles: ERR_INVALID (the message names the parameter). */
enum err_code query_read_labels(const struct request *request, struct store_query *query,
                                struct err *err) MUST_USE;
/* Adds the labels that the report needs: those that it groups by or counts. */
void query_want_labels(const struct request *request, const struct report *report,
                       struct store_query *query);
/* As store_merge; the caller ends with store_result_fini. */
enum err_code query_merge(const struct request *request, const struct store_query *query,
                          struct store_result *ret_result, struct err *err) MUST_USE;

/* Limits a report of the query's result to the rest of the query's time. */
void query_limit_report(const struct store_query *query, struct report *report);
/* For the result of such a report: ERR_LIMIT if that time was over, otherwise code. */
enum err_code query_explain(const struct store_query *query, enum err_code code,
                            struct err *err) MUST_USE;

/* What a result lacks, in ASCII; NULL if it is complete. */
const char *query_describe_missing(struct arena *arena, const struct store_statistics *read);
/* Returns ERR_INVALID: the parameter names a label that the result does not have, with possible
 * reasons. */
enum err_code query_refuse_label(struct arena *arena, const char *parameter,
                                 const struct store_result *result, struct err *err);
/* Adds the header fields that describe the result; begin_ns is the start, of the monotonic clock.
 */
void query_add_fields(struct request *request, struct response *response,
                      const struct store_result *result, int64_t begin_ns);

/* Adds only those of any result of the store: Perfolio-Statistics, Perfolio-Warning. */
void query_add_statistics(struct request *request, struct response *response,
                          const struct store_statistics *read, int64_t begin_ns);
/* Adds a Perfolio-Warning if the query found nothing and its selector requires a label that neither
 * a series nor a sample of the window has. */
void query_explain_labels(struct request *request, struct response *response,
                          const struct store_query *query, const struct store_statistics *read);

extern const struct route_table query_routes;

#endif

/*
 * query: queries of the store (store/store.h) over HTTP. One route merges the profiles that a
 * selector matches in a window and responds with a report, of the same kinds as for shares. Another
 * route returns one profile of a list (api/query/profile_list.h), not merged with others.
 *
 * The window contains the profiles with start <= begin < end. start and end have the forms of
 * lib/base/time_parse.h; the default is the last hour. Reports and their parameters are those of
 * shares (api/report/report.h). Header fields describe the result: Perfolio-Profile-Type,
 * Perfolio-Rule (sum, mean, difference), Perfolio-Statistics (the blocks, rows and bytes that were
 * read), and Perfolio-Warning if the result lacks stored data that is damaged.
 */
#ifndef API_QUERY_QUERY_H
#define API_QUERY_QUERY_H

#include "api/http/route.h"

struct arena;
struct report;
struct store_result;
struct store_query;
struct store_statistics;

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

/* Sets the tenant, its limits and the window of the query. For a GET it takes a concurrency slot of
 * the tenant first. Errors: ERR_INVALID, ERR_BUSY (no slot is free: the server handles a GET
 * again later). */
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

/* Describes, in ASCII, the data that a result lacks; NULL if it is complete. In arena. */
const char *query_describe_missing(struct arena *arena, const struct store_statistics *read);
/* Sets err: the label that parameter names is not in the result, with possible reasons. Returns
 * ERR_INVALID. */
enum err_code query_refuse_label(struct arena *arena, const char *parameter,
                                 const struct store_result *result, struct err *err);
/* Adds the header fields that describe the result. begin_ns: when the request began
 * (clock_monotonic_ns), for the elapsed time in Perfolio-Statistics. */
void query_add_fields(struct request *request, struct response *response,
                      const struct store_result *result, int64_t begin_ns);

/* Adds only Perfolio-Statistics and Perfolio-Warning, for results of the store that are not merged
 * profiles. */
void query_add_statistics(struct request *request, struct response *response,
                          const struct store_statistics *read, int64_t begin_ns);
/* Adds a Perfolio-Warning if the query found nothing and its selector requires a label that neither
 * a series nor a sample of the window has. */
void query_explain_labels(struct request *request, struct response *response,
                          const struct store_query *query, const struct store_statistics *read);

extern const struct route_table query_routes;

#endif

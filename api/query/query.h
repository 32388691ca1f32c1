/*
 * query: questions to the store (store/store.h) over HTTP: what a selector finds in a window, as
 * any report that shares have; and one profile of a list (api/query/profile_list.h), as it was
 * sent.
 *
 * The window is start <= begin of a profile < end; both as lib/base/time_parse.h reads them, the
 * last hour where they are missing. Reports and their parameters are those of shares
 * (api/report/report.h). Answers tell how they were made in fields: Perfolio-Profile-Type,
 * Perfolio-Rule (sum, mean, difference), Perfolio-Statistics (what was read), and Perfolio-Warning
 * when something stored is broken and the answer is of the rest.
 */
#ifndef API_QUERY_QUERY_H
#define API_QUERY_QUERY_H

#include "api/http/route.h"

struct arena;
struct report;
struct store_result;
struct store_query;
struct store_statistics;

/* Those of query_read_labels but label, which reports have too. */
extern const char *const query_id_selectors[]; /* NULL at the end */

/* The parameters of one question: query, start and end, or those of one side of a diff. */
struct query_names {
    const char *query;
    const char *start;
    const char *end;
};
extern const struct query_names query_names;

/* Takes a turn of the tenant's first, where the request is a GET. Then the tenant, its limits and
 * the window; of what the caller says. Handles: ERR_INVALID, ERR_BUSY (it is handled again later).
 */
enum err_code query_read_window(struct request *request, const struct query_names *names,
                                struct store_query *ret_query, struct err *err) MUST_USE;
/* The selectors of the parameters `match[]`: what any of them finds; none: all series. Handles:
 * ERR_INVALID (too many). */
enum err_code query_read_matches(const struct request *request, struct store_query *query,
                                 struct err *err) MUST_USE;
/*
 * Reads a question of the request's tenant. Without start and end it has the window of others,
 * which may be NULL. Does not ask who may. Handles: ERR_INVALID (the message names the parameter).
 */
enum err_code query_read(struct request *request, const struct query_names *names,
                         const struct query_names *others, struct store_query *ret_query,
                         struct err *err) MUST_USE;
/*
 * Which samples by their labels: the parameter label (lib/profile/report/label_filter.h), and by
 * ids of spans and traces span_selector and trace_id_selector, each of which may be repeated.
 * Handles: ERR_INVALID (the message names the parameter).
 */
enum err_code query_read_labels(const struct request *request, struct store_query *query,
                                struct err *err) MUST_USE;
/* The labels that samples need for the report: what it is grouped by, what it counts. */
void query_want_labels(const struct request *request, const struct report *report,
                       struct store_query *query);
/* As store_merge; the caller ends with store_result_fini. */
enum err_code query_merge(const struct request *request, const struct store_query *query,
                          struct store_result *ret_answer, struct err *err) MUST_USE;

/* A report of the query's answer costs no more than is left of its time. */
void query_limit_report(const struct store_query *query, struct report *report);
/* With what became of such a report: ERR_LIMIT when it ran out of that time, else code. */
enum err_code query_explain(const struct store_query *query, enum err_code code,
                            struct err *err) MUST_USE;

/* What is missing in an answer, in ASCII; NULL when nothing is. */
const char *query_describe_missing(struct arena *arena, const struct store_statistics *read);
/* ERR_INVALID: the parameter names a label that the answer does not have, and why it may be so. */
enum err_code query_refuse_label(struct arena *arena, const char *parameter,
                                 const struct store_result *answer, struct err *err);
/* The fields that tell how the answer was made, since begin_ns of the monotonic clock. */
void query_add_fields(struct request *request, struct response *response,
                      const struct store_result *answer, int64_t begin_ns);

/* Of them those that any answer of the store has: Perfolio-Statistics, Perfolio-Warning. */
void query_add_statistics(struct request *request, struct response *response,
                          const struct store_statistics *read, int64_t begin_ns);
/* Adds a Perfolio-Warning when the query found nothing and its selector requires a label that
 * neither a series nor a sample of the window has. */
void query_explain_labels(struct request *request, struct response *response,
                          const struct store_query *query, const struct store_statistics *read);

extern const struct route_table query_routes;

#endif

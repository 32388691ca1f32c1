/*
 * report_diff: the two sides of a difference: each a share (a, b) or a query (a_query, a_start,
 * a_end; b_query, b_start, b_end), which takes SCOPE_READ.
 *
 * A query without a window has that of the other side's query, and without that the last hour. What
 * is made of a query is neither kept nor shared: the next answer may have more profiles.
 */
#ifndef API_REPORT_REPORT_DIFF_H
#define API_REPORT_REPORT_DIFF_H

#include "api/report/report.h"

/* Names of the parameters, NULL-terminated. */
extern const char *const report_diff_names[];

/* Reads mode and sides; report->queries tells which are none of shares. Handles: ERR_INVALID,
 * ERR_UNAUTHENTICATED and ERR_FORBIDDEN (a query), and what share_access_find does. */
enum err_code report_diff_read(struct request *request, struct report *report,
                               struct err *err) MUST_USE;

/* Reads mode alone. Handles: ERR_INVALID. */
enum err_code report_diff_read_mode(const struct request *request, struct report *report,
                                    struct err *err) MUST_USE;

/* Is a side a query? Then the answer is made by report_diff_respond. */
bool report_diff_has_query(const struct report *report);
enum err_code report_diff_respond(struct request *request, struct response *response,
                                  const struct report *report, struct err *err) MUST_USE;

#endif

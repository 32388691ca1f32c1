/*
 * share_report: the reports (api/report/report.h) of a share, or of two that are compared.
 *
 * A response is made once (lib/base/flight_cache.h) from a decoded profile
 * (api/share/profile_cache.h), and cached in the form in which it is sent. Its ETag depends on the
 * bytes of the shares and on the parameters, so that a repeated request costs one look-up and no
 * decoding. The whole body is in memory, since it is made once for all requests for it. For clients
 * without credentials, one file per address is generated at a time
 * (api/http/concurrency_limit.h). Threads: any.
 */
#ifndef API_SHARE_SHARE_REPORT_H
#define API_SHARE_SHARE_REPORT_H

#include "api/http/route.h"
#include "api/report/report.h"
#include "api/share/share.h"

/* Flame, top, callers, labels, merge, exports; matched before the pages' /p/{id}. */
extern const struct route_table share_report_routes;

struct share_report {
    struct report report;
    struct share shares[2]; /* report.side_count of them: shares[1] is compared with shares[0] */
};

/*
 * Reads the parameters and finds the shares, whose ids are the first share_count parameters of the
 * path. Errors: ERR_INVALID (a parameter), and the codes of share_access_find.
 */
enum err_code share_report_read(struct request *request, const struct report_kind *kind,
                                unsigned parameters, int64_t default_limit, size_t share_count,
                                struct share_report *ret_share_report, struct err *err) MUST_USE;
/* Finds the share of one side and sets share_report->shares[side]. Errors: those of
 * share_access_find. */
enum err_code share_report_read_side(struct request *request, struct span id, size_t side,
                                     struct share_report *share_report, struct err *err) MUST_USE;

/* The maximal memory for the report of these shares, including decoding; 0 for a light one, which
 * needs no memory of the memory gate. */
uint64_t share_report_memory(const struct report *report, const struct share *const *shares,
                             size_t count);

/* The part of share_report_memory that is for the tables of the report. Not 0 for a light one: the
 * bytes that its tables take. */
uint64_t share_report_view_memory(const struct report *report, const struct share *const *shares,
                                  size_t count);

/* Responds from the client's own copy (304), from the cache, or with a new report. */
enum err_code share_report_respond(struct request *request, struct response *response,
                                   struct share_report *share_report, struct err *err) MUST_USE;

#endif

/*
 * report_merge: POST /api/v1/merge {"shares":["…","…"]}: the sum of several profiles of one kind
 * (five runs of a benchmark) as a new share, whose original bytes are the merged pprof.
 */
#ifndef API_REPORT_REPORT_MERGE_H
#define API_REPORT_REPORT_MERGE_H

#include "api/http/request.h"

enum {
    REPORT_MERGE_SHARES = 64,
    REPORT_MERGE_BYTES = 512 << 20 /* all profiles together, decoded */
};

enum err_code report_merge_handle(struct request *request, struct response *response,
                                  struct err *err) MUST_USE;

#endif

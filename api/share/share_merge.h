/*
 * share_merge: POST /api/v1/merge {"shares":["…","…"]}: the sum of several profiles of one kind
 * (five runs of a benchmark) as a new share, whose original bytes are the merged pprof.
 */
#ifndef API_SHARE_SHARE_MERGE_H
#define API_SHARE_SHARE_MERGE_H

#include "api/http/request.h"

enum {
    SHARE_MERGE_SHARES = 64,
    SHARE_MERGE_BYTES = 512 << 20 /* all profiles together, decoded */
};

enum err_code share_merge_handle(struct request *request, struct response *response,
                                 struct err *err) MUST_USE;

#endif

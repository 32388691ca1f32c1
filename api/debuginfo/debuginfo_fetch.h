/*
 * debuginfo_fetch: symbol tables of binaries whose names were requested (symbol_need), made from
 * files of debuginfod servers (api/debuginfo/debuginfo_upstreams.h selects them).
 *
 * A few threads fetch; only one of the servers that share a database fetches a build id at a time:
 * there is one live job for it (symbol_job, kind 'fetch'), as long as its lease is renewed. All
 * teams that use the public servers share the job and its result. Teams are served round robin, and
 * none can occupy all threads, since its servers may be slow on purpose; a fetch ends after ten
 * minutes. Received files are read by perfolio-symbolize in its sandbox; if a file is useless, the
 * next server is tried. The result is stored in the need: a reason, and the time of the next
 * attempt (lib/io/debuginfod_retry.h).
 */
#ifndef API_DEBUGINFO_DEBUGINFO_FETCH_H
#define API_DEBUGINFO_DEBUGINFO_FETCH_H

#include "lib/base/err_code.h"

struct debuginfo_fetch;
struct server;

/* *ret_fetch is NULL if the operator has disabled fetching. */
enum err_code debuginfo_fetch_start(struct server *server, struct debuginfo_fetch **ret_fetch,
                                    struct err *err) MUST_USE;
/* Aborts running fetches. NULL is a no-op. */
void debuginfo_fetch_stop(struct debuginfo_fetch *fetch);

#endif

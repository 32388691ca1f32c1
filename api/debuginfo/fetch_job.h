/*
 * debuginfo_fetch: symbol tables of binaries that somebody wants names of (symbol_need), made of
 * what debuginfod servers have (api/debuginfo/upstreams.h says which).
 *
 * A few threads ask, of all servers at a database one for the same build id: the live job of it
 * (symbol_job, kind 'fetch') is there once, for as long as its lease is renewed. A team of the
 * public servers shares question and answer with all others of them. Teams take turns, and none has
 * all threads, since its servers may be slow on purpose; a question ends after ten minutes. What
 * comes is read by perfolio-symbolize in its sandbox; of a server that sent what is of no use the
 * next one is asked. What came of it stands in the need: a reason, and when it is asked for again
 * (lib/io/debuginfod_manners.h).
 */
#ifndef API_DEBUGINFO_FETCH_JOB_H
#define API_DEBUGINFO_FETCH_JOB_H

#include "lib/base/err.h"

struct debuginfo_fetch;
struct server;

/* *ret_fetch is NULL where the operator has nobody asked. */
enum err_code debuginfo_fetch_start(struct server *server, struct debuginfo_fetch **ret_fetch,
                                    struct err *err) MUST_USE;
/* Gives up what is being fetched. NULL is a no-op. */
void debuginfo_fetch_stop(struct debuginfo_fetch *fetch);

#endif

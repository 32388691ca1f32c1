/*
 * debuginfo_upstreams: which debuginfod servers are asked for a team's debug files, and asking
 * them: GET and PUT /api/v1/debuginfo/upstreams (scope admin: owners), POST /api/v1/debuginfo/retry
 * (scope debuginfo).
 *
 * A team's mode is one of
 *   public   the operator's list (--debuginfod-urls), the usual one: build ids of its binaries are
 *            told to those servers; tables of what they give are shared with all teams
 *   custom   its own servers, each perhaps with a header that proves who asks; tables of what they
 *            give are its own
 *   off      nobody is asked
 * Where the operator has turned all of it off (--debuginfod-urls=off), nobody is asked for any
 * team. A header is written once and shown to nobody: the server's role cannot even read it. Only
 * where it is sent, in lib/io/debuginfod_client.h, it is known. Threads: any.
 */
#ifndef API_DEBUGINFO_UPSTREAMS_H
#define API_DEBUGINFO_UPSTREAMS_H

#include "api/http/route.h"
#include "lib/io/debuginfod_client.h"

struct pg_connection;
struct server;
struct settings;

extern const struct route_table debuginfo_upstream_routes;

/* The client that asks, by the settings of the operator; NULL in *ret_client when all of it is off.
 * Handles: ERR_INVALID (a setting). */
enum err_code debuginfo_upstreams_open(const struct settings *settings,
                                       struct debuginfod_client **ret_client,
                                       struct err *err) MUST_USE;

struct debuginfo_upstreams {
    bool is_public; /* what they give may be shared with all teams */
    const struct debuginfod_upstream *upstreams;
    size_t count; /* 0: nobody is asked */
};

/* Those of a team, of a connection of background work. Texts live in arena. Handles: ERR_DATABASE.
 */
enum err_code debuginfo_upstreams_of(const struct server *server, struct pg_connection *connection,
                                     int64_t tenant_id, struct arena *arena,
                                     struct debuginfo_upstreams *ret_upstreams,
                                     struct err *err) MUST_USE;

#endif

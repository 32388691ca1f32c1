/*
 * debuginfo_upstreams: the debuginfod servers from which a team's debug files are requested: GET
 * and PUT /api/v1/debuginfo/upstreams (scope admin: owners), POST /api/v1/debuginfo/retry (scope
 * debuginfo).
 *
 * A team's mode is one of
 *   public   the operator's list (--debuginfod-urls), the default: build ids of its binaries are
 *            sent to those servers; tables made from their files are shared with all teams
 *   custom   its own servers, each optionally with a header that authenticates the team; tables
 *            made from their files are its own
 *   off      no server is contacted
 * If the operator has disabled fetching (--debuginfod-urls=off), no server is contacted for any
 * team. A header is write-only: the server's role cannot read it, and only
 * lib/io/debuginfod_client.h, which sends it, gets it. Threads: any.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_UPSTREAMS_H
#define API_DEBUGINFO_DEBUGINFO_UPSTREAMS_H

#include "api/http/route.h"
#include "lib/io/debuginfod_client.h"

struct pg_connection;
struct server;
struct settings;

extern const struct route_table debuginfo_upstreams_routes;

/* Creates the client for the operator's settings; *ret_client is NULL if fetching is disabled.
 * Errors: ERR_INVALID (a setting). */
enum err_code debuginfo_upstreams_open(const struct settings *settings,
                                       struct debuginfod_client **ret_client,
                                       struct err *err) MUST_USE;

struct debuginfo_upstreams {
    bool is_public; /* the tables may be shared with all teams */
    int64_t owner;  /* the team that listed the servers, or 0 for the operator's list */
    const struct debuginfod_upstream *upstreams;
    size_t count; /* 0: no server is contacted */
};

/* The servers of a team, on a connection of background work. Texts live in arena. Errors:
 * ERR_DATABASE. */
enum err_code debuginfo_upstreams_of(const struct server *server, struct pg_connection *connection,
                                     int64_t tenant_id, struct arena *arena,
                                     struct debuginfo_upstreams *ret_upstreams,
                                     struct err *err) MUST_USE;

#endif

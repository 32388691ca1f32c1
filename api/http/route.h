/*
 * route: one row of the route table: method, path, access, limits, handler.
 *
 * Each part of the server declares a table of rows in its own header (share_routes, export_routes,
 * …). api/server/routes.h lists the tables, and api/server/route_match.h finds the row for a
 * request.
 */
#ifndef API_HTTP_ROUTE_H
#define API_HTTP_ROUTE_H

#include "api/http/request.h"

enum route_access {
    ACCESS_PUBLIC, /* anyone; the handler checks access to what it shows (a share's visibility) */
    ACCESS_ANONYMOUS, /* anyone if the server allows anonymous sharing, else as ACCESS_SCOPES */
    ACCESS_SIGNED_IN, /* any token or user */
    ACCESS_SCOPES,    /* a token or user that has all of route->scopes */
};

enum route_flags {
    ROUTE_INLINE =
        1 << 0, /* runs on the loop thread: must not block or use the database (health, assets) */
    ROUTE_LIMIT_404 = 1 << 1, /* counts anonymous misses per address, with doubling back-off */
    ROUTE_NO_CSRF = 1 << 2,   /* a session by cookie needs no CSRF token (sign-in) */
    ROUTE_CORS = 1 << 3,      /* Access-Control-Allow-Origin: * and OPTIONS, for reads only */
    ROUTE_PROBE =
        1 << 4, /* runs on threads of its own, so it responds however busy the others are */
    /* As ROUTE_CORS, but only for responses that set response.is_open_to_sites: a share's files,
     * which other sites may show if everyone with the link may see them. */
    ROUTE_CORS_IF_OPEN = 1 << 5,
    /* For agents of other profilers: also accepts HTTP Basic with a token as the password;
     * X-Scope-OrgID, if sent, has to name the token's team. Runs on threads of its own. */
    ROUTE_AGENT = 1 << 6,
    /* Errors have the form of the protocol (api/server/protocol_error.h) instead of problem
     * documents. */
    ROUTE_OTLP = 1 << 7,
    ROUTE_CONNECT = 1 << 8,
    ROUTE_PYROSCOPE = 1 << 9,
    /* Signing in: also served on reserved connections (api/server/http_server.h). */
    ROUTE_SIGN_IN = 1 << 10,
    /* Stores data of the request: refused while the disk is full (api/core/disk.h). Implied by
     * ROUTE_AGENT. */
    ROUTE_STORES = 1 << 11,
    /* Credentials are not looked up before the handler runs, because that could take longer than
     * the response may. The handler may look them up itself. */
    ROUTE_NO_IDENTITY = 1 << 12,
    /* Sends a stored object, which may be in a bucket that responds slowly. Runs on threads of its
     * own, so that other requests do not wait for the bucket; its slots are those of
     * request_limits.downloads. */
    ROUTE_DOWNLOAD = 1 << 13,
    /* Takes access or published data away, or changes a person's rights or password. Other clients
     * of the team cannot use up the rate of these changes (api/identity/change_limit.h). */
    ROUTE_SECURITY = 1 << 14,
    /* Is allowed below the disk's reserve although its method is unsafe: it changes no rows, or the
     * handler refuses (disk_check) what neither frees space nor takes access away. */
    ROUTE_NEEDS_NO_SPACE = 1 << 15,
    /* Computes the hash of a password, for which it may wait (rate_limiter_enter). Runs on threads
     * of its own, so that other requests do not wait behind attempts to guess passwords. */
    ROUTE_PASSWORD = 1 << 16,
};

struct route {
    enum http_method method; /* HEAD is handled wherever GET is */
    const char *pattern; /* "/api/v1/shares/{id}/top"; {…} matches a path segment or, with text
                            beside it as in "{id}.svg", the other part of the segment */
    enum route_access access;
    unsigned
        scopes; /* with ACCESS_SCOPES (and with ACCESS_ANONYMOUS for clients with credentials) */
    unsigned flags;
    size_t max_body_bytes; /* 0: no body is allowed */
    enum err_code (*handle)(struct request *request, struct response *response, struct err *err);
};

struct route_table {
    const struct route *routes;
    size_t route_count;
};

/* The tables of a server, in the order of matching (api/server/route_match.h). */
struct route_list {
    const struct route_table *const *tables;
    size_t table_count;
};

#endif

/*
 * routes: the one table of what the server answers: method, path, who may, limits, handler.
 *
 * Each part of the server declares its rows in its own header (share_routes, identity_routes, …)
 * and routes.c joins them. The authorisation matrix test walks the same table through `perfoliod
 * routes --json`.
 */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/http/request.h"

#include <stdio.h>

enum route_access {
    ACCESS_PUBLIC,    /* anyone; the handler checks what it shows (a share's visibility) */
    ACCESS_ANONYMOUS, /* anyone if the server allows anonymous sharing, else as ACCESS_SCOPES */
    ACCESS_SIGNED_IN, /* any token or user */
    ACCESS_SCOPES,    /* a token or user that has all of route->scopes */
};

enum route_flags {
    ROUTE_INLINE = 1 << 0, /* runs on the loop thread: no blocking, no database (health, assets) */
    ROUTE_LIMIT_404 = 1 << 1, /* counts anonymous misses per address, with doubling back-off */
    ROUTE_NO_CSRF = 1 << 2,   /* a cookie session is not required to carry a CSRF token (sign-in) */
    ROUTE_CORS = 1 << 3,      /* Access-Control-Allow-Origin: * and OPTIONS, for reads only */
    ROUTE_PROBE =
        1 << 4, /* runs on threads of its own: it is answered however busy the others are */
    /* ROUTE_CORS, but only for answers that say so (response.is_open_to_sites): a share's files,
     * which other sites may show when everybody with the link may see them. */
    ROUTE_CORS_IF_OPEN = 1 << 5,
    /* For agents of other profilers: takes HTTP Basic with a token as the password, too, and
     * X-Scope-OrgID has to name the token's team where it is sent. Runs on threads of its own. */
    ROUTE_AGENT = 1 << 6,
    /* Errors are those of the protocol (api/http/protocol_error.h), not problem documents. */
    ROUTE_OTLP = 1 << 7,
    ROUTE_CONNECT = 1 << 8,
    ROUTE_PYROSCOPE = 1 << 9,
    /* Signing in: served on reserved connections, too (api/http/http_server.h). */
    ROUTE_SIGN_IN = 1 << 10,
    /* Stores what the request brings: refused while the disk has no room (api/ops/disk.h). All of
     * ROUTE_AGENT do. */
    ROUTE_STORES = 1 << 11,
    /* Credentials are ignored, unless the handler looks them up itself: it could take longer than
     * the response may. */
    ROUTE_NO_IDENTITY = 1 << 12,
};

struct route {
    enum http_method method; /* HEAD is answered wherever GET is */
    const char *pattern;     /* "/api/v1/shares/{id}/top"; {…} matches one segment or its part */
    enum route_access access;
    unsigned scopes; /* with ACCESS_SCOPES (and ACCESS_ANONYMOUS for those who sign in) */
    unsigned flags;
    size_t max_body_bytes; /* 0: no body is taken */
    enum err_code (*handle)(struct request *request, struct response *response, struct err *err);
};

struct route_table {
    const struct route *routes;
    size_t route_count;
};

/* All tables, in the order of matching. */
const struct route_table *const *routes_all(size_t *ret_table_count);

/*
 * The route for method and path, with what {…} matched in ret_params.
 * Handles: ERR_NOT_FOUND (no such path), ERR_UNSUPPORTED (the path exists with other methods).
 */
enum err_code routes_match(enum http_method method, struct span path,
                           struct span ret_params[REQUEST_MAX_PATH_PARAMS],
                           const struct route **ret_route, struct err *err) MUST_USE;

/* The methods that path answers, as in the field Allow: "GET, HEAD, POST"; "" when there are none.
 */
void routes_allow(struct span path, struct buf *buf);

const char *http_method_name(enum http_method method);
/* False for methods that no route has. */
bool http_method_parse(struct span name, enum http_method *ret_method);

/* The table as JSON lines, for tests and for the curious. */
void routes_print(FILE *file);

#endif

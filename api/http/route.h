/*
 * route: one row of what the server answers: method, path, who may, limits, handler.
 *
 * Each part of the server declares a table of rows in its own header (share_routes, query_routes,
 * …). api/server/routes.h lists the tables and finds the row of a request.
 */
#ifndef API_HTTP_ROUTE_H
#define API_HTTP_ROUTE_H

#include "api/http/request.h"

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
    /* Errors are those of the protocol (api/server/protocol_error.h), not problem documents. */
    ROUTE_OTLP = 1 << 7,
    ROUTE_CONNECT = 1 << 8,
    ROUTE_PYROSCOPE = 1 << 9,
    /* Signing in: served on reserved connections, too (api/server/http_server.h). */
    ROUTE_SIGN_IN = 1 << 10,
    /* Stores what the request brings: refused while the disk has no room (api/core/disk.h). All of
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

#endif

#include "api/server/health.h"

#include "api/core/disk.h"
#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/identity/auth.h"
#include "api/ops/object_readiness.h"
#include "api/server/http_server.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <stdatomic.h>

enum { METRICS_MAX_BYTES = 4 << 20 };

#define READY_FOR_NS CLOCK_NS_PER_S

/* With the time to connect, which lib/io/pg.h bounds, less than 2 s. */
enum { PING_MS = 1500 };

static enum err_code get_healthz(struct request *request, struct response *response,
                                 struct err *err)
{
    (void)err;
    response_add(request, response, "cache-control", "no-store");
    response_bytes(response, 200, "text/plain; charset=utf-8", SPAN_LITERAL("ok\n"));
    return ERR_NONE;
}

static enum err_code check_database(struct server *server, struct arena *arena, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take_at_once(server->database, &connection, err);
    if (code == ERR_BUSY) /* all connections are in use: the other pool uses the same database */
        code = pg_take_at_once(server->jobs_database, &connection, err);
    if (code)
        return code;
    struct pg_result *result;
    pg_limit(connection, PING_MS);
    return pg_query(connection, PG_NO_TENANT, "SELECT 1", NULL, 0, arena, &result, err);
}

/* Paths, hosts and roles are for the log, not for every client. */
static void log_not_ready(const struct request *request, const struct err *err)
{
    char quoted[ERR_MESSAGE_BYTES * 2];
    log_event(LOG_WARN, "not ready", "request_id=%s code=%s err=%s", request->id,
              err_code_name(err->code), log_quote(err->message, quoted, sizeof(quoted)));
}

/* For monitoring, which sees only the response: it names the failing part without details. */
static enum err_code fail_not_ready(const struct request *request, const char *part,
                                    struct err *err)
{
    log_not_ready(request, err);
    err_set(err, ERR_BUSY, "%s; the server's log has the reason, try again in a few seconds", part);
    err->retry_after_s = 5;
    return ERR_BUSY;
}

static enum err_code check_objects(const struct request *request, struct err *err)
{
    const char *problem = object_readiness_problem(request->server->object_readiness);
    if (!problem)
        return ERR_NONE;
    err_set(err, ERR_BUSY, "not ready: %s", problem);
    err->retry_after_s = 5;
    return ERR_BUSY;
}

/* A successful check is reused for a short time, unless the database has failed a request since. */
static bool is_known_ready(struct http_readiness *readiness, uint64_t failure_count)
{
    int64_t found_ns = atomic_load(&readiness->found_ns);
    return found_ns > 0 && clock_monotonic_ns() - found_ns <= READY_FOR_NS &&
           atomic_load(&readiness->failure_count) == failure_count;
}

static enum err_code get_readyz(struct request *request, struct response *response, struct err *err)
{
    struct http_server *http = request->server->http;
    if (http_server_is_stopping(http)) {
        err_set(err, ERR_BUSY, "the server is stopping; try again in a few seconds");
        err->retry_after_s = 5;
        return ERR_BUSY;
    }
    if (disk_check(request->server->disk, err)) {
        log_not_ready(request, err);
        return err->code;
    }
    if (!object_store_is_responding(request->server->objects)) {
        err_set(err, ERR_BUSY, "the S3 server does not respond");
        return fail_not_ready(request, "the S3 server does not respond", err);
    }
    struct http_readiness *readiness = http_server_readiness(http);
    if (check_objects(request, err))
        return err->code;
    uint64_t failure_count = pg_pool_failure_count(request->server->database) +
                             pg_pool_failure_count(request->server->jobs_database);
    if (!is_known_ready(readiness, failure_count)) {
        if (check_database(request->server, request->arena, err))
            return fail_not_ready(request, "the database does not respond", err);
        atomic_store(&readiness->failure_count, failure_count);
        atomic_store(&readiness->found_ns, clock_monotonic_ns());
    }
    response_add(request, response, "cache-control", "no-store");
    response_bytes(response, 200, "text/plain; charset=utf-8", SPAN_LITERAL("ready\n"));
    return ERR_NONE;
}

/* Operators have to be able to see that the database is down. */
static enum err_code check_operator(struct request *request, struct err *err)
{
    enum err_code code = auth_identify(request, err);
    if ((code == ERR_DATABASE || code == ERR_BUSY) && auth_recall(request))
        code = ERR_NONE;
    if (code)
        return code;
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        return err_set(err, ERR_UNAUTHENTICATED, "metrics are for operators: send a token");
    if (!principal_has(&request->principal, SCOPE_OPERATOR))
        return err_set(err, ERR_FORBIDDEN, "metrics are for operators: send a token of one");
    return ERR_NONE;
}

/* Connections that are all in use do not mean that the database is down. */
static bool is_database_up(struct request *request)
{
    struct err err;
    const enum err_code code = check_database(request->server, request->arena, &err);
    return !code || (code == ERR_BUSY && pg_watch_is_responding(request->server->database_watch));
}

static enum err_code get_metrics(struct request *request, struct response *response,
                                 struct err *err)
{
    const bool is_public = request->server->settings->public_metrics;
    const enum err_code code = is_public ? ERR_NONE : check_operator(request, err);
    if (code)
        return code;
    atomic_store(&http_server_readiness(request->server->http)->is_database_up,
                 is_database_up(request));
    buf_auto buf;
    buf_init(&buf, METRICS_MAX_BYTES);
    metrics_write(request->server->metrics, &buf);
    response->may_compress = true;
    response_add(request, response, "cache-control", "no-store");
    return response_buf(request, response, 200, "text/plain; version=0.0.4; charset=utf-8", &buf,
                        err);
}

static const struct route routes[] = {
    {.method = HTTP_GET, .pattern = "/healthz", .flags = ROUTE_INLINE, .handle = get_healthz},
    {.method = HTTP_GET,
     .pattern = "/readyz",
     .flags = ROUTE_PROBE | ROUTE_NO_IDENTITY,
     .handle = get_readyz},
    {.method = HTTP_GET,
     .pattern = "/metrics",
     .flags =
         ROUTE_PROBE | ROUTE_NO_IDENTITY, /* get_metrics identifies the client when it needs to */
     .handle = get_metrics},
};

const struct route_table health_routes = {.routes = routes,
                                          .route_count = sizeof(routes) / sizeof(*routes)};

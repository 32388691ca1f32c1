#include "api/identity/audit.h"

#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/http/rate_limiter.h"
#include "api/http/request.h"
#include "api/http/request_limits.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

enum { MINUTES_OF_HOUR = 60 };

static const char *const kind_names[] = {
    [PRINCIPAL_ANONYMOUS] = "anonymous",
    [PRINCIPAL_TOKEN] = "token",
    [PRINCIPAL_USER] = "user",
};

enum err_code audit_record(struct pg_connection *connection, const struct request *request,
                           const char *action, const char *target, struct err *err)
{
    return audit_record_for(connection, request, request->principal.tenant_id, action, target, err);
}

enum err_code audit_record_for(struct pg_connection *connection, const struct request *request,
                               int64_t tenant_id, const char *action, const char *target,
                               struct err *err)
{
    const struct principal *who = &request->principal;
    return pg_queue_values(
        connection, tenant_id,
        "INSERT INTO audit_log (tenant_id, actor_kind, user_id, token_id, actor, action, target,"
        " address, request_id) VALUES ($1, $2, nullif($3::bigint, 0), nullif($4::bigint, 0),"
        " coalesce((SELECT email FROM app_user WHERE id = $3),"
        " (SELECT name FROM token WHERE id = $4), ''), $5, $6, $7, $8)",
        request->arena, err, PG_I64(tenant_id), PG_TEXT(kind_names[who->kind]),
        PG_I64(who->user_id), PG_I64(who->token_id), PG_TEXT(action), PG_TEXT(target),
        PG_TEXT(request->address), PG_TEXT(request->id));
}

/* The key of LIMIT_AUDIT_HOURLY. */
static struct span hourly_key(const struct request *request, int64_t tenant_id, const char *action,
                              const char *target)
{
    const struct principal *who = &request->principal;
    return span_text(arena_printf(request->arena, "%" PRId64 " %s %s %s %" PRId64 " %" PRId64,
                                  tenant_id, action, target, kind_names[who->kind], who->user_id,
                                  who->token_id));
}

enum err_code audit_record_hourly(struct pg_connection *connection, const struct request *request,
                                  int64_t tenant_id, const char *action, const char *target,
                                  bool *ret_is_recorded, struct err *err)
{
    struct err limit_err;
    *ret_is_recorded = rate_limiter_take(request->server->limits->rate_limiter, LIMIT_AUDIT_HOURLY,
                                         hourly_key(request, tenant_id, action, target),
                                         1.0 / MINUTES_OF_HOUR, 1, &limit_err) == ERR_NONE;
    return *ret_is_recorded ? audit_record_for(connection, request, tenant_id, action, target, err)
                            : ERR_NONE;
}

void audit_undo_hourly(const struct request *request, int64_t tenant_id, const char *action,
                       const char *target)
{
    rate_limiter_give_back(request->server->limits->rate_limiter, LIMIT_AUDIT_HOURLY,
                           hourly_key(request, tenant_id, action, target));
}

static enum err_code write_refused(const struct request *request, int64_t tenant_id,
                                   const char *action, const char *target, struct err *err)
{
    char key[24];
    snprintf(key, sizeof(key), "%" PRId64, tenant_id);
    struct rate_limiter *rate_limiter = request->server->limits->rate_limiter;
    enum err_code code =
        rate_limiter_take(rate_limiter, LIMIT_AUDIT_TENANT, span_text(key),
                          AUDIT_REFUSED_TENANT_MINUTE, AUDIT_REFUSED_TENANT_BURST, err);
    if (code)
        return code;
    code = rate_limiter_take(rate_limiter, LIMIT_AUDIT_SERVER, SPAN_LITERAL(""),
                             AUDIT_REFUSED_SERVER_MINUTE, AUDIT_REFUSED_SERVER_BURST, err);
    if (code)
        return code;
    pg_auto connection = NULL;
    code = pg_take(request->server->database, &connection, err);
    return code ? code : audit_record_for(connection, request, tenant_id, action, target, err);
}

void audit_record_refused(const struct request *request, int64_t tenant_id, const char *action,
                          const char *target)
{
    struct err err;
    char text[ERR_MESSAGE_BYTES + 16];
    enum err_code code = write_refused(request, tenant_id, action, target, &err);
    if (!code)
        return;
    metric_add(metrics_counter(request->server->metrics, "perfolio_audit_dropped_total", "",
                               "Refused attempts that were not written to an audit log."),
               1);
    if (code != ERR_RATE_LIMITED)
        log_event(LOG_ERROR, "a refused attempt is missing in the audit log",
                  "action=%s request_id=%s error=%s", action, request->id,
                  log_quote(err.message, text, sizeof(text)));
}

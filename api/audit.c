#include "api/audit.h"

#include "api/request.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

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

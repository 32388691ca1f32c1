#include "api/identity/failed_sign_ins.h"

#include "api/core/server.h"
#include "api/http/json_response.h"
#include "api/http/request.h"
#include "api/identity/auth.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

/* Rows of an account, or with $1 = 0 those of e-mails without an account: two texts, so that both
 * use the index of user_id. */
#define DELETE_OLDER(condition)                                                                    \
    "DELETE FROM failed_sign_in WHERE id IN (SELECT id FROM failed_sign_in"                        \
    " WHERE " condition " AND id <= (SELECT id FROM failed_sign_in"                                \
    " WHERE " condition " ORDER BY id DESC OFFSET $2 LIMIT 1)"                                     \
    " FOR UPDATE SKIP LOCKED)"

static enum err_code record_failure(const struct request *request, int64_t tenant_id,
                                    int64_t user_id, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "INSERT INTO failed_sign_in (tenant_id, user_id, address)"
                           " VALUES ($1, nullif($2::bigint, 0), $3)",
                           request->arena, NULL, err, PG_I64(tenant_id), PG_I64(user_id),
                           PG_TEXT(request->address));
    if (code)
        return code;
    return pg_query_values(
        connection, tenant_id,
        user_id ? DELETE_OLDER("user_id = $1") : DELETE_OLDER("user_id IS NULL AND $1::bigint = 0"),
        request->arena, NULL, err, PG_I64(user_id), PG_I64(FAILED_SIGN_INS_KEPT));
}

void failed_sign_ins_record(const struct request *request, int64_t tenant_id, int64_t user_id)
{
    struct err err;
    char text[ERR_MESSAGE_BYTES + 16];
    if (record_failure(request, tenant_id, user_id, &err))
        log_event(LOG_ERROR, "a failed sign-in is not recorded", "user_id=%lld error=%s",
                  (long long)user_id, log_quote(err.message, text, sizeof(text)));
}

static void write_failures(struct json_response *json, const struct pg_result *rows)
{
    int64_t count = 0;
    json_response_open(json, NULL, '{');
    json_response_cell_text(json, "since", rows, 0, 0);
    json_response_open(json, "addresses", '[');
    for (int row = 0; row < pg_row_count(rows); row++) {
        if (pg_is_null(rows, row, 1))
            continue;
        count += pg_get_i64(rows, row, 2);
        json_response_open(json, NULL, '{');
        json_response_cell_text(json, "address", rows, row, 1);
        json_response_cell_i64(json, "count", rows, row, 2);
        json_response_cell_text(json, "last_at", rows, row, 3);
        json_response_close(json, '}');
    }
    json_response_close(json, ']');
    json_response_i64(json, "count", count);
    json_response_bool(json, "is_complete", count < FAILED_SIGN_INS_KEPT);
    json_response_close(json, '}');
}

enum err_code failed_sign_ins_get(struct request *request, struct response *response,
                                  struct err *err)
{
    static const char *const no_query[] = {NULL};
    uint8_t hash[DIGEST_BYTES];
    struct pg_result *rows;
    pg_auto connection = NULL;
    if (request->principal.kind != PRINCIPAL_USER)
        return err_set(err, ERR_FORBIDDEN,
                       "A token has no sign-ins: sign in to see those of your account");
    digest_sha256(request_cookie(request, AUTH_COOKIE), hash);
    enum err_code code = request_check_query(request, no_query, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, request->principal.tenant_id,
        "SELECT rfc3339(s.previous_sign_in_at), f.address, count(f.id), rfc3339(max(f.at))"
        " FROM session s LEFT JOIN failed_sign_in f ON f.user_id = s.user_id"
        " AND f.at > coalesce(s.previous_sign_in_at, '-infinity')"
        " WHERE s.secret_hash = $1 GROUP BY s.previous_sign_in_at, f.address"
        " ORDER BY max(f.at) DESC, f.address",
        request->arena, &rows, err, PG_BYTES(span_of(hash, sizeof(hash))));
    if (code)
        return code;
    if (pg_row_count(rows) == 0)
        return err_set(err, ERR_UNAUTHENTICATED, "Your session has ended; sign in again");
    json_response_auto json;
    json_response_init(&json);
    write_failures(&json, rows);
    return json_response_send(&json, request, response, 200, err);
}

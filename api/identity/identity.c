#include "api/identity/identity.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/identity/audit.h"
#include "api/identity/failed_sign_ins.h"
#include "api/identity/invitation.h"
#include "api/identity/operator.h"
#include "api/identity/session.h"
#include "api/identity/tenant.h"
#include "api/identity/token.h"
#include "api/identity/user.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

enum { BODY_BYTES = 64 << 10 };

#define ROUTE(verb, path, access_kind, scope_bits, flag_bits, body_bytes, handler)                 \
    {                                                                                              \
        .method = HTTP_##verb, .pattern = (path), .access = ACCESS_##access_kind,                  \
        .scopes = (scope_bits), .flags = (flag_bits), .max_body_bytes = (body_bytes),              \
        .handle = (handler)                                                                        \
    }

/* clang-format off: a table */
static const struct route identity_rows[] = {
    ROUTE(GET, "/api/v1/session", PUBLIC, 0, ROUTE_SIGN_IN, 0, session_get),
    ROUTE(POST, "/api/v1/session", PUBLIC, 0, ROUTE_NO_CSRF | ROUTE_SIGN_IN | ROUTE_PASSWORD,
          BODY_BYTES, session_post),
    ROUTE(DELETE, "/api/v1/session", PUBLIC, 0, ROUTE_SECURITY, 0, session_delete),
    ROUTE(POST, "/api/v1/password", SIGNED_IN, 0, ROUTE_SECURITY | ROUTE_PASSWORD, BODY_BYTES,
          session_post_password),
    ROUTE(GET, "/api/v1/failed-sign-ins", SIGNED_IN, 0, 0, 0, failed_sign_ins_get),
    ROUTE(GET, "/api/v1/tokens", SIGNED_IN, 0, 0, 0, token_list),
    ROUTE(POST, "/api/v1/tokens", SIGNED_IN, 0, 0, BODY_BYTES, token_post),
    ROUTE(DELETE, "/api/v1/tokens/{id}", SIGNED_IN, 0, ROUTE_SECURITY, 0, token_delete),
    ROUTE(GET, "/api/v1/users", SCOPES, SCOPE_ADMIN, 0, 0, user_list),
    ROUTE(PATCH, "/api/v1/users/{id}", SCOPES, SCOPE_ADMIN, ROUTE_SECURITY, BODY_BYTES, user_patch),
    ROUTE(DELETE, "/api/v1/users/{id}", SCOPES, SCOPE_ADMIN, ROUTE_SECURITY, 0, user_delete),
    ROUTE(GET, "/api/v1/invitations", SCOPES, SCOPE_ADMIN, 0, 0, invitation_list),
    ROUTE(POST, "/api/v1/invitations", SCOPES, SCOPE_ADMIN, 0, BODY_BYTES, invitation_post),
    ROUTE(POST, "/api/v1/invitations/look", PUBLIC, 0, ROUTE_NO_CSRF | ROUTE_NEEDS_NO_SPACE,
          BODY_BYTES, invitation_look),
    ROUTE(POST, "/api/v1/invitations/accept", PUBLIC, 0, ROUTE_NO_CSRF | ROUTE_PASSWORD, BODY_BYTES,
          invitation_accept),
    ROUTE(DELETE, "/api/v1/invitations/{id}", SCOPES, SCOPE_ADMIN, ROUTE_SECURITY, 0,
          invitation_delete),
    ROUTE(GET, "/api/v1/tenant", SIGNED_IN, 0, 0, 0, tenant_get),
    ROUTE(PATCH, "/api/v1/tenant", SCOPES, SCOPE_ADMIN, 0, BODY_BYTES, tenant_patch),
    ROUTE(GET, "/api/v1/audit", SCOPES, SCOPE_ADMIN, 0, 0, tenant_get_audit),
};

static const struct route operator_rows[] = {
    ROUTE(GET, "/api/v1/admin/tenants", SCOPES, SCOPE_OPERATOR, 0, 0, operator_list_tenants),
    ROUTE(POST, "/api/v1/admin/tenants", SCOPES, SCOPE_OPERATOR, 0, BODY_BYTES,
          operator_post_tenant),
    ROUTE(GET, "/api/v1/admin/tenants/{id}", SCOPES, SCOPE_OPERATOR, 0, 0, operator_get_tenant),
    ROUTE(PATCH, "/api/v1/admin/tenants/{id}", SCOPES, SCOPE_OPERATOR, 0, BODY_BYTES,
          operator_patch_tenant),
    ROUTE(DELETE, "/api/v1/admin/tenants/{id}", SCOPES, SCOPE_OPERATOR, 0, 0,
          operator_delete_tenant),
    ROUTE(GET, "/api/v1/admin/tenants/{id}/users", SCOPES, SCOPE_OPERATOR, 0, 0,
          operator_people_list_users),
    ROUTE(DELETE, "/api/v1/admin/tenants/{id}/users/{user}", SCOPES, SCOPE_OPERATOR, 0, 0,
          operator_people_delete_user),
    ROUTE(GET, "/api/v1/admin/tenants/{id}/tokens", SCOPES, SCOPE_OPERATOR, 0, 0,
          operator_people_list_tokens),
    ROUTE(DELETE, "/api/v1/admin/tenants/{id}/tokens/{token}", SCOPES, SCOPE_OPERATOR, 0, 0,
          operator_people_delete_token),
    ROUTE(POST, "/api/v1/admin/tenants/{id}/users", SCOPES, SCOPE_OPERATOR, 0, BODY_BYTES,
          operator_post_user),
    ROUTE(POST, "/api/v1/admin/tenants/{id}/tokens", SCOPES, SCOPE_OPERATOR, 0, BODY_BYTES,
          operator_post_token),
    ROUTE(POST, "/api/v1/admin/login-codes", SCOPES, SCOPE_OPERATOR, 0, BODY_BYTES,
          operator_post_login_code),
};
/* clang-format on */

#define TABLE_OF(rows)                                                                             \
    {                                                                                              \
        .routes = (rows), .route_count = sizeof(rows) / sizeof((rows)[0])                          \
    }
const struct route_table identity_routes = TABLE_OF(identity_rows);
const struct route_table identity_operator_routes = TABLE_OF(operator_rows);

/* ---- first user and token ---- */

enum {
    ALL_SCOPES =
        SCOPE_INGEST | SCOPE_READ | SCOPE_SHARE | SCOPE_DEBUGINFO | SCOPE_ADMIN | SCOPE_OPERATOR
};

static struct span hash_text(struct arena *arena, const char *secret)
{
    uint8_t *hash = arena_new(arena, uint8_t, DIGEST_BYTES);
    digest_sha256(span_text(secret), hash);
    return span_of(hash, DIGEST_BYTES);
}

/* Keeps the known token if it is unexpired and has exactly ALL_SCOPES, otherwise creates one. */
static enum err_code ensure_token(struct pg_connection *connection, struct arena *arena,
                                  const char *known_token, char ret_token[DIGEST_TOKEN_BYTES],
                                  struct err *err)
{
    struct pg_result *row;
    if (known_token && span_text(known_token).size == DIGEST_TOKEN_LENGTH) {
        enum err_code code = pg_query_values(
            connection, TENANT_DEFAULT,
            "SELECT id FROM token WHERE secret_hash = $1 AND tenant_id = $2 AND scopes = $3"
            " AND (expires_at IS NULL OR expires_at > now())",
            arena, &row, err, PG_BYTES(hash_text(arena, known_token)), PG_I64(TENANT_DEFAULT),
            PG_I64(ALL_SCOPES));
        if (code)
            return code;
        if (pg_row_count(row) > 0) {
            memcpy(ret_token, known_token, DIGEST_TOKEN_BYTES);
            return ERR_NONE;
        }
    }
    digest_random_token(ret_token);
    return pg_query_values(connection, TENANT_DEFAULT,
                           "INSERT INTO token (tenant_id, name, secret_hash, scopes)"
                           " VALUES ($1, 'admin.token', $2, $3)",
                           arena, NULL, err, PG_I64(TENANT_DEFAULT),
                           PG_BYTES(hash_text(arena, ret_token)), PG_I64(ALL_SCOPES));
}

/* Finds the user that the sign-in code is for: an operator among the owners of tenant default,
 * otherwise its oldest owner. Creates admin@localhost first if it has no owner.
 */
static enum err_code ensure_owner(struct pg_connection *connection, struct arena *arena,
                                  int64_t *ret_user_id, struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        connection, TENANT_DEFAULT,
        "INSERT INTO app_user (tenant_id, email, name, role, is_operator)"
        " SELECT $1::bigint, 'admin@localhost', 'Administrator', 'owner', true"
        " WHERE NOT EXISTS (SELECT FROM app_user WHERE tenant_id = $1 AND role = 'owner')"
        " ON CONFLICT DO NOTHING",
        arena, NULL, err, PG_I64(TENANT_DEFAULT));
    if (code)
        return code;
    code = pg_query_values(connection, TENANT_DEFAULT,
                           "SELECT id FROM app_user WHERE tenant_id = $1 AND role = 'owner'"
                           " ORDER BY is_operator DESC, id LIMIT 1",
                           arena, &row, err, PG_I64(TENANT_DEFAULT));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_CONFLICT,
                       "Tenant default has no owner and admin@localhost belongs to another tenant");
    *ret_user_id = pg_get_i64(row, 0, 0);
    return ERR_NONE;
}

static enum err_code make_login_code(struct pg_connection *connection, struct arena *arena,
                                     int64_t user_id, char ret_code[DIGEST_SECRET_BYTES],
                                     struct err *err)
{
    enum err_code code = pg_query_values(
        connection, TENANT_DEFAULT, "DELETE FROM login_code WHERE tenant_id = $1 AND is_bootstrap",
        arena, NULL, err, PG_I64(TENANT_DEFAULT));
    if (code)
        return code;
    digest_random_secret(ret_code);
    return pg_query_values(connection, TENANT_DEFAULT,
                           "INSERT INTO login_code (tenant_id, user_id, secret_hash, is_bootstrap,"
                           " expires_at) VALUES ($1, $2, $3, true,"
                           " now() + make_interval(secs => $4::bigint))",
                           arena, NULL, err, PG_I64(TENANT_DEFAULT), PG_I64(user_id),
                           PG_BYTES(hash_text(arena, ret_code)), PG_I64(OPERATOR_CODE_LIFETIME_S));
}

static enum err_code commit_first_rows(struct pg_connection *connection, const char *known_token,
                                       struct identity_bootstrap *result, struct err *err)
{
    int64_t user_id = 0;
    arena_auto arena = arena_create();
    enum err_code code = pg_begin(connection, TENANT_DEFAULT, err);
    if (code)
        return code;
    code = ensure_token(connection, arena, known_token, result->admin_token, err);
    if (code)
        return code;
    code = ensure_owner(connection, arena, &user_id, err);
    if (code)
        return code;
    code = make_login_code(connection, arena, user_id, result->login_code, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

enum err_code identity_bootstrap(struct pg_connection *connection, const char *known_token,
                                 struct identity_bootstrap *ret_result, struct err *err)
{
    struct identity_bootstrap result;
    enum err_code code = commit_first_rows(connection, known_token, &result, err);
    if (code) {
        pg_rollback(connection);
        return code;
    }
    *ret_result = result;
    return ERR_NONE;
}

/* ---- background work ---- */

enum {
    TRIM_ROWS = 10000, /* in one statement */
    TRIM_STEPS = 20,   /* in one round; the next round continues */
};

static enum err_code forget_audit(struct pg_connection *connection, struct arena *arena,
                                  const char *actions, int keep_days, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH old AS (SELECT id, tenant_id FROM audit_log WHERE action LIKE $2::text"
        "  AND at < now() - make_interval(days => $1::integer) LIMIT 10000),"
        " held AS (SELECT id FROM tenant WHERE id IN (SELECT tenant_id FROM old)"
        "  FOR KEY SHARE SKIP LOCKED)"
        " DELETE FROM audit_log WHERE id IN (SELECT o.id FROM old o JOIN held h"
        "  ON h.id = o.tenant_id)",
        arena, NULL, err, PG_I64(keep_days), PG_TEXT(actions));
}

/* Deletes up to TRIM_ROWS of the oldest rows of logs that are too long. Unless is_first, only the
 * logs that have grown are counted: a log without a new row has been trimmed before. */
static enum err_code trim_audit(struct pg_connection *connection, int max_rows, bool is_first,
                                struct arena *arena, int64_t *ret_count, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "WITH grown AS (SELECT tenant_id FROM audit_log WHERE at > now() - interval '1 hour'"
        "  UNION SELECT id FROM tenant WHERE $3::boolean),"
        " cut AS (SELECT g.tenant_id, (SELECT a.id FROM audit_log a"
        "  WHERE a.tenant_id = g.tenant_id ORDER BY a.id DESC OFFSET $1::bigint LIMIT 1) AS id"
        "  FROM grown g),"
        " old AS (SELECT a.id, a.tenant_id FROM cut c JOIN audit_log a"
        "  ON a.tenant_id = c.tenant_id AND a.id <= c.id ORDER BY a.id LIMIT $2::bigint),"
        " held AS (SELECT id FROM tenant WHERE id IN (SELECT tenant_id FROM old)"
        "  FOR KEY SHARE SKIP LOCKED)"
        " DELETE FROM audit_log WHERE id IN (SELECT o.id FROM old o JOIN held h"
        "  ON h.id = o.tenant_id)",
        arena, &result, err, PG_I64(max_rows), PG_I64(TRIM_ROWS), PG_BOOL(is_first));
    if (code == ERR_NONE)
        *ret_count = pg_affected(result);
    return code;
}

static enum err_code trim_audit_logs(struct server *server, struct identity_jobs *jobs,
                                     struct pg_connection *connection, struct err *err)
{
    const int64_t now_ns = clock_monotonic_ns();
    enum err_code code = ERR_NONE;
    int64_t count = TRIM_ROWS;
    if (now_ns < jobs->next_trim_ns)
        return ERR_NONE;
    for (int i = 0; i < TRIM_STEPS && count == TRIM_ROWS && !code; i++) {
        arena_auto arena = arena_create();
        code = trim_audit(connection, server->settings->audit_max_rows, !jobs->has_trimmed, arena,
                          &count, err);
    }
    if (code == ERR_NONE && count < TRIM_ROWS) {
        jobs->next_trim_ns = now_ns + IDENTITY_TRIM_S * CLOCK_NS_PER_S;
        jobs->has_trimmed = true;
    }
    return code;
}

/* Skips rows that are locked, so it never waits (tenant.h). */
enum err_code identity_jobs_run(struct server *server, struct identity_jobs *jobs, struct err *err)
{
    static const char *const sweeps[] = {
        ("DELETE FROM session WHERE id IN (SELECT id FROM session WHERE expires_at <= now()"
         " OR last_used_at <= now() - interval '7 days' FOR UPDATE SKIP LOCKED)"),
        ("DELETE FROM login_code WHERE id IN (SELECT id FROM login_code"
         " WHERE expires_at <= now() FOR UPDATE SKIP LOCKED)"),
        ("DELETE FROM invitation WHERE id IN (SELECT id FROM invitation"
         " WHERE expires_at <= now() FOR UPDATE SKIP LOCKED)"),
        ("DELETE FROM token WHERE id IN (SELECT id FROM token"
         " WHERE expires_at <= now() - interval '30 days' FOR UPDATE SKIP LOCKED)"),
        /* api/identity/failed_sign_ins.h */
        ("DELETE FROM failed_sign_in WHERE id IN (SELECT id FROM failed_sign_in"
         " WHERE at <= now() - interval '30 days' FOR UPDATE SKIP LOCKED)"),
    };
    pg_auto connection = NULL;
    arena_auto arena = arena_create();
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]) && !code; i++)
        code = pg_query(connection, PG_NO_TENANT, sweeps[i], NULL, 0, arena, NULL, err);
    if (code)
        return code;
    code = forget_audit(connection, arena, "%", AUDIT_KEEP_DAYS, err);
    if (code)
        return code;
    code = forget_audit(connection, arena, "%.refuse", AUDIT_KEEP_REFUSED_DAYS, err);
    return code ? code : trim_audit_logs(server, jobs, connection, err);
}

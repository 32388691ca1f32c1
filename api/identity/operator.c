#include "api/identity/operator.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/auth.h"
#include "api/identity/identity_parts.h"
#include "api/identity/password.h"
#include "api/identity/tenant.h"
#include "api/identity/tenant_limits.h"
#include "api/identity/token.h"
#include "api/identity/user.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>

/* ---- a tenant as JSON ---- */

/* Quotas are null where the server's default applies. */
#define TENANT_SELECT                                                                              \
    "SELECT t.id, t.name, rfc3339(t.created_at), t.max_bytes_stored, t.uploads_per_minute,"        \
    " t.max_upload_bytes,"                                                                         \
    " (SELECT count(*) FROM app_user u WHERE u.tenant_id = t.id),"                                 \
    " (SELECT count(*) FROM token k WHERE k.tenant_id = t.id),"                                    \
    " (SELECT coalesce(sum(bytes_stored), 0) FROM tenant_usage g WHERE g.tenant_id = t.id),"       \
    " t.profile_retention_s, t.limits::text, t.sample_labels"                                      \
    " FROM tenant t"

static void write_tenant(struct json_response *json, const struct pg_result *rows, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_i64(json, "id", rows, row, 0);
    json_response_cell_text(json, "name", rows, row, 1);
    json_response_cell_text(json, "created_at", rows, row, 2);
    json_response_cell_text(json, "sample_labels", rows, row, 11);
    json_response_open(json, "quotas", '{');
    json_response_cell_i64(json, "max_bytes_stored", rows, row, 3);
    json_response_cell_i64(json, "uploads_per_minute", rows, row, 4);
    json_response_cell_i64(json, "max_upload_bytes", rows, row, 5);
    json_response_cell_i64(json, "profile_retention_s", rows, row, 9);
    tenant_limits_write_own(json, pg_get_text(rows, row, 10));
    json_response_close(json, '}');
    json_response_open(json, "usage", '{');
    json_response_cell_i64(json, "users", rows, row, 6);
    json_response_cell_i64(json, "tokens", rows, row, 7);
    json_response_cell_i64(json, "bytes_stored", rows, row, 8);
    json_response_close(json, '}');
    json_response_close(json, '}');
}

static enum err_code refuse_unknown_tenant(int64_t id, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "There is no tenant %" PRId64 ": the list of tenants shows their ids", id);
}

static enum err_code respond_tenant(struct request *request, struct response *response,
                                    struct pg_connection *connection, int64_t id, int status,
                                    struct err *err)
{
    struct pg_result *rows;
    enum err_code code = pg_query_values(connection, PG_NO_TENANT, TENANT_SELECT " WHERE t.id = $1",
                                         request->arena, &rows, err, PG_I64(id));
    if (code)
        return code;
    if (pg_row_count(rows) == 0)
        return refuse_unknown_tenant(id, err);
    json_response_auto json;
    json_response_init(&json);
    write_tenant(&json, rows, 0);
    return json_response_send(&json, request, response, status, err);
}

/* ---- list and get ---- */

enum { TENANT_DEFAULT_LIMIT = 100, TENANT_MAX_LIMIT = 1000 };

enum err_code operator_list_tenants(struct request *request, struct response *response,
                                    struct err *err)
{
    static const char *const known[] = {"cursor", "limit", NULL};
    int64_t cursor = 0, limit = 0;
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = request_query_i64(request, "cursor", 0, INT64_MAX, 0, &cursor, err);
    if (code)
        return code;
    code =
        request_query_i64(request, "limit", 1, TENANT_MAX_LIMIT, TENANT_DEFAULT_LIMIT, &limit, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           TENANT_SELECT " WHERE t.id > $1 ORDER BY t.id LIMIT $2", request->arena,
                           &rows, err, PG_I64(cursor), PG_I64(limit + 1));
    if (code)
        return code;
    bool has_more = pg_row_count(rows) > limit;
    int count = has_more ? (int)limit : pg_row_count(rows);
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "tenants", '[');
    for (int row = 0; row < count; row++)
        write_tenant(&json, rows, row);
    json_response_close(&json, ']');
    json_response_text(&json, "next_cursor", has_more ? pg_get_text(rows, count - 1, 0) : NULL);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

enum err_code operator_get_tenant(struct request *request, struct response *response,
                                  struct err *err)
{
    int64_t id = 0;
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 0, &id, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    return respond_tenant(request, response, connection, id, 200, err);
}

/* ---- create and change ---- */

static const char *const tenant_fields[] = {"name",
                                            "max_bytes_stored",
                                            "uploads_per_minute",
                                            "max_upload_bytes",
                                            "profile_retention_s",
                                            "sample_labels",
                                            NULL};

#define RETENTION_MAX_S INT64_C(3153600000) /* a hundred years */

struct tenant_input {
    const char *name; /* NULL: unchanged */
    int64_t max_bytes_stored;
    int64_t uploads_per_minute;
    int64_t max_upload_bytes;
    int64_t profile_retention_s;
    const char *limits;        /* JSON of the limits that change */
    const char *sample_labels; /* in stored form; NULL: absent, or the server's setting */
};

/* A quota that is absent or null reads as -1; json_body_has distinguishes the two. */
static enum err_code read_tenant_input(const struct json_body *body, size_t min_name_bytes,
                                       struct arena *arena, struct tenant_input *input,
                                       struct err *err)
{
    enum err_code code =
        json_body_text(body, "name", min_name_bytes, TENANT_MAX_NAME_BYTES, &input->name, err);
    if (code)
        return code;
    if (input->name && input->name[0] == '\0')
        return err_set(err, ERR_INVALID, "The field \"name\" is empty");
    code = json_body_i64(body, "max_bytes_stored", 0, INT64_MAX, -1, &input->max_bytes_stored, err);
    if (code)
        return code;
    code =
        json_body_i64(body, "uploads_per_minute", 0, 1000000, -1, &input->uploads_per_minute, err);
    if (code)
        return code;
    code = json_body_i64(body, "max_upload_bytes", 0, INT64_MAX, -1, &input->max_upload_bytes, err);
    if (code)
        return code;
    code = json_body_i64(body, "profile_retention_s", 0, RETENTION_MAX_S, -1,
                         &input->profile_retention_s, err);
    if (code)
        return code;
    code = tenant_read_labels(body, arena, &input->sample_labels, err);
    if (code)
        return code;
    return tenant_limits_read_input(body, arena, &input->limits, err);
}

static enum err_code refuse_taken_name(const char *name, struct err *err)
{
    return err_set(err, ERR_CONFLICT, "There is a tenant \"%.100s\" already: choose another name",
                   name);
}

static enum err_code insert_tenant(struct request *request, struct pg_connection *connection,
                                   const struct tenant_input *input, int64_t *ret_id,
                                   struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "INSERT INTO tenant (name, max_bytes_stored, uploads_per_minute, max_upload_bytes,"
        " profile_retention_s, limits, sample_labels) VALUES ($1, nullif($2::bigint, -1), "
        "nullif($3::bigint, -1),"
        " nullif($4::bigint, -1), nullif($5::bigint, -1), jsonb_strip_nulls($6::text::jsonb), $7)"
        " RETURNING id",
        request->arena, &row, err, PG_TEXT(input->name), PG_I64(input->max_bytes_stored),
        PG_I64(input->uploads_per_minute), PG_I64(input->max_upload_bytes),
        PG_I64(input->profile_retention_s), PG_TEXT(input->limits),
        input->sample_labels ? PG_TEXT(input->sample_labels) : PG_NULL);
    if (code == ERR_CONFLICT)
        return refuse_taken_name(input->name, err);
    if (code)
        return code;
    *ret_id = pg_get_i64(row, 0, 0);
    return audit_record(connection, request, "tenant.create",
                        arena_printf(request->arena, "%" PRId64 " %s", *ret_id, input->name), err);
}

enum err_code operator_post_tenant(struct request *request, struct response *response,
                                   struct err *err)
{
    int64_t id = 0;
    struct tenant_input input = {0};
    struct json_body *body = NULL;
    pg_auto connection = NULL;
    enum err_code code =
        json_body_parse(request, tenant_limits_names(request->arena, tenant_fields), &body, err);
    if (code)
        return code;
    code = read_tenant_input(body, 1, request->arena, &input, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = insert_tenant(request, connection, &input, &id, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    response_add(request, response, "location",
                 arena_printf(request->arena, "/api/v1/admin/tenants/%" PRId64, id));
    return respond_tenant(request, response, connection, id, 201, err);
}

static enum err_code update_tenant(struct request *request, struct pg_connection *connection,
                                   int64_t id, const struct json_body *body,
                                   const struct tenant_input *input, struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "UPDATE tenant SET name = coalesce($2, name),"
        " max_bytes_stored = CASE WHEN $3 THEN nullif($4::bigint, -1) ELSE max_bytes_stored END,"
        " uploads_per_minute = CASE WHEN $5 THEN nullif($6::bigint, -1)"
        " ELSE uploads_per_minute END,"
        " max_upload_bytes = CASE WHEN $7 THEN nullif($8::bigint, -1) ELSE max_upload_bytes END,"
        " profile_retention_s = CASE WHEN $9 THEN nullif($10::bigint, -1)"
        " ELSE profile_retention_s END,"
        " limits = jsonb_strip_nulls(limits || $11::text::jsonb),"
        " sample_labels = CASE WHEN $12 THEN $13 ELSE sample_labels END"
        " WHERE id = $1 RETURNING name",
        request->arena, &row, err, PG_I64(id), input->name ? PG_TEXT(input->name) : PG_NULL,
        PG_BOOL(json_body_has(body, "max_bytes_stored")), PG_I64(input->max_bytes_stored),
        PG_BOOL(json_body_has(body, "uploads_per_minute")), PG_I64(input->uploads_per_minute),
        PG_BOOL(json_body_has(body, "max_upload_bytes")), PG_I64(input->max_upload_bytes),
        PG_BOOL(json_body_has(body, "profile_retention_s")), PG_I64(input->profile_retention_s),
        PG_TEXT(input->limits), PG_BOOL(json_body_has(body, "sample_labels")),
        input->sample_labels ? PG_TEXT(input->sample_labels) : PG_NULL);
    if (code == ERR_CONFLICT)
        return refuse_taken_name(input->name ? input->name : "", err);
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return refuse_unknown_tenant(id, err);
    return audit_record(connection, request, "tenant.change",
                        arena_printf(request->arena, "%" PRId64 " %s", id, pg_get_text(row, 0, 0)),
                        err);
}

enum err_code operator_patch_tenant(struct request *request, struct response *response,
                                    struct err *err)
{
    int64_t id = 0;
    struct tenant_input input = {0};
    struct json_body *body = NULL;
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 0, &id, err);
    if (code)
        return code;
    code = json_body_parse(request, tenant_limits_names(request->arena, tenant_fields), &body, err);
    if (code)
        return code;
    code = read_tenant_input(body, 0, request->arena, &input, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = update_tenant(request, connection, id, body, &input, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    tenant_limits_forget(request->server->identity->tenant_limits, id);
    return respond_tenant(request, response, connection, id, 200, err);
}

/* ---- delete: rows go by cascade, and triggers hand the objects to the background work ---- */

static enum err_code delete_tenant(struct request *request, struct pg_connection *connection,
                                   int64_t id, struct err *err)
{
    struct pg_result *row;
    enum err_code code =
        pg_query_values(connection, PG_NO_TENANT, "DELETE FROM tenant WHERE id = $1 RETURNING name",
                        request->arena, &row, err, PG_I64(id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return refuse_unknown_tenant(id, err);
    return audit_record(connection, request, "tenant.delete",
                        arena_printf(request->arena, "%" PRId64 " %s", id, pg_get_text(row, 0, 0)),
                        err);
}

enum err_code operator_delete_tenant(struct request *request, struct response *response,
                                     struct err *err)
{
    int64_t id = 0;
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 0, &id, err);
    if (code)
        return code;
    if (id == TENANT_ANONYMOUS || id == TENANT_DEFAULT)
        return err_set(err, ERR_CONFLICT,
                       "The server needs this tenant; delete its content instead");
    if (id == request->principal.tenant_id)
        return err_set(
            err, ERR_CONFLICT,
            "You belong to this tenant yourself: ask an operator of another one to delete it");
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = delete_tenant(request, connection, id, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    auth_forget_tenant(request->server->identity->auth, id);
    return json_response_nothing(request, response);
}

/* ---- first users, tokens and sign-in links ---- */

static enum err_code find_tenant(struct request *request, struct pg_connection *connection,
                                 int64_t id, struct err *err)
{
    struct pg_result *row;
    if (id == TENANT_ANONYMOUS)
        return err_set(err, ERR_CONFLICT,
                       "The anonymous tenant has neither users nor tokens: choose another one");
    enum err_code code = pg_query_values(connection, PG_NO_TENANT,
                                         "SELECT id FROM tenant WHERE id = $1 FOR KEY SHARE",
                                         request->arena, &row, err, PG_I64(id));
    if (!code && pg_row_count(row) == 0)
        return refuse_unknown_tenant(id, err);
    return code;
}

static enum err_code make_login_url(struct request *request, struct pg_connection *connection,
                                    int64_t user_id, const char **ret_url,
                                    const char **ret_expires_at, struct err *err)
{
    char secret[DIGEST_SECRET_BYTES];
    uint8_t hash[DIGEST_BYTES];
    struct pg_result *row;
    digest_random_secret(secret);
    digest_sha256(span_text(secret), hash);
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "INSERT INTO login_code (tenant_id, user_id, secret_hash, expires_at)"
        " SELECT tenant_id, id, $2, now() + make_interval(secs => $3::bigint) FROM app_user"
        " WHERE id = $1 RETURNING rfc3339(expires_at)",
        request->arena, &row, err, PG_I64(user_id), PG_BYTES(span_of(hash, sizeof(hash))),
        PG_I64(OPERATOR_CODE_LIFETIME_S));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "There is no such user: the list of users shows their ids");
    *ret_url = arena_printf(request->arena, "%s/login#code=%s",
                            request->server->settings->public_url, secret);
    *ret_expires_at = pg_get_text(row, 0, 0);
    return ERR_NONE;
}

struct user_input {
    const char *email;
    const char *name;
    const char *password; /* NULL: the response has a sign-in link instead */
    enum role role;
};

static enum err_code read_user_input(const struct request *request, const struct json_body *body,
                                     struct user_input *input, struct err *err)
{
    enum err_code code = json_body_text(body, "email", 1, USER_MAX_EMAIL_BYTES, &input->email, err);
    if (code)
        return code;
    code = user_check_email(input->email, err);
    if (code)
        return code;
    code = json_body_text(body, "name", 0, USER_MAX_NAME_BYTES, &input->name, err);
    if (code)
        return code;
    code = json_body_text(body, "password", 0, PASSWORD_MAX_BYTES, &input->password, err);
    if (code)
        return code;
    if (input->password)
        code = password_check(span_text(input->password), err);
    if (code)
        return code;
    return user_read_role(request, body, &input->role, err);
}

static enum err_code create_user(struct request *request, struct response *response,
                                 struct pg_connection *connection, int64_t tenant_id,
                                 const struct user_input *input, const char *hash, struct err *err)
{
    int64_t user_id = 0;
    const char *url = NULL, *expires_at = NULL;
    enum err_code code = find_tenant(request, connection, tenant_id, err);
    if (code)
        return code;
    code = user_add(request, connection, tenant_id, input->email, input->name, input->role, hash,
                    &user_id, err);
    if (code)
        return code;
    if (!hash)
        code = make_login_url(request, connection, user_id, &url, &expires_at, err);
    if (code)
        return code;
    code = audit_record_for(connection, request, tenant_id, "user.create", input->email, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_i64(&json, "id", user_id);
    json_response_i64(&json, "tenant_id", tenant_id);
    json_response_text(&json, "email", input->email);
    json_response_text(&json, "name", input->name ? input->name : "");
    json_response_text(&json, "role", auth_role_name(input->role));
    json_response_text(&json, "login_url", url);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 201, err);
}

enum err_code operator_post_user(struct request *request, struct response *response,
                                 struct err *err)
{
    static const char *const known[] = {"email", "name", "role", "password", NULL};
    int64_t tenant_id = 0;
    struct user_input input = {0};
    char hash[DIGEST_PASSWORD_BYTES];
    struct json_body *body = NULL;
    enum err_code code = json_response_path_id(request, 0, &tenant_id, err);
    if (code)
        return code;
    code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = read_user_input(request, body, &input, err);
    if (code)
        return code;
    if (input.password)
        code = password_hash(request->server->limits->rate_limiter, SLOT_PASSWORD,
                             span_text(request->address), span_text(input.password), hash, err);
    if (code)
        return code;
    pg_auto connection = NULL;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    return create_user(request, response, connection, tenant_id, &input,
                       input.password ? hash : NULL, err);
}

enum err_code operator_post_token(struct request *request, struct response *response,
                                  struct err *err)
{
    int64_t tenant_id = 0;
    struct token_input input = {0};
    struct json_body *body = NULL;
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 0, &tenant_id, err);
    if (code)
        return code;
    code = json_body_parse(request, token_fields, &body, err);
    if (code)
        return code;
    code = token_read_input(body, request->principal.scopes, &input, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = find_tenant(request, connection, tenant_id, err);
    if (code)
        return code;
    code = token_create(request, response, connection, tenant_id, &input, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

/* The user with that e-mail; without an e-mail, an operator among the owners of tenant default,
 * otherwise its oldest owner. */
static enum err_code find_login_user(struct request *request, struct pg_connection *connection,
                                     const char *email, struct pg_result **ret_row, struct err *err)
{
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "SELECT id, email, tenant_id FROM app_user WHERE CASE WHEN $1::text IS NULL"
        " THEN tenant_id = $2 AND role = 'owner' ELSE lower(email) = lower($1) END"
        " ORDER BY is_operator DESC, id LIMIT 1",
        request->arena, ret_row, err, email ? PG_TEXT(email) : PG_NULL, PG_I64(TENANT_DEFAULT));
    if (!code && pg_row_count(*ret_row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "There is no user with that e-mail: look for typing errors, or for it in "
                       "the list of users");
    return code;
}

static enum err_code create_login_code(struct request *request, struct response *response,
                                       struct pg_connection *connection, const char *email,
                                       struct err *err)
{
    struct pg_result *user;
    const char *url = NULL, *expires_at = NULL;
    enum err_code code = find_login_user(request, connection, email, &user, err);
    if (code)
        return code;
    code = make_login_url(request, connection, pg_get_i64(user, 0, 0), &url, &expires_at, err);
    if (code)
        return code;
    code = audit_record_for(connection, request, pg_get_i64(user, 0, 2), "login-code.create",
                            pg_get_text(user, 0, 1), err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_cell_text(&json, "email", user, 0, 1);
    json_response_text(&json, "url", url);
    json_response_text(&json, "expires_at", expires_at);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 201, err);
}

enum err_code operator_post_login_code(struct request *request, struct response *response,
                                       struct err *err)
{
    static const char *const known[] = {"email", NULL};
    const char *email = NULL;
    struct json_body *body = NULL;
    pg_auto connection = NULL;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "email", 0, USER_MAX_EMAIL_BYTES, &email, err);
    if (code)
        return code;
    code = pg_take(request->server->jobs_database, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    return create_login_code(request, response, connection, email, err);
}

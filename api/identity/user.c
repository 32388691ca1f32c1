#include "api/identity/user.h"

#include "api/core/server.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/auth.h"
#include "api/identity/identity_parts.h"
#include "api/identity/team_etag.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <string.h>

enum err_code user_check_email(const char *email, struct err *err)
{
    const char *at = strchr(email, '@');
    bool is_good = at && at != email && at[1] != '\0' && !strchr(at + 1, '@') &&
                   strlen(email) <= USER_MAX_EMAIL_BYTES;
    for (const char *c = email; *c && is_good; c++)
        is_good = (unsigned char)*c > ' ' && *c != 0x7f && !strchr("<>\"(),;:\\", *c);
    if (is_good)
        return ERR_NONE;
    return err_set(err, ERR_INVALID, "The field \"email\" must be an e-mail address");
}

enum err_code user_read_role(const struct request *request, const struct json_body *body,
                             enum role *ret_role, struct err *err)
{
    const char *name = NULL;
    enum err_code code = json_body_text(body, "role", 1, 20, &name, err);
    if (code)
        return code;
    enum role role = auth_role_parse(span_text(name));
    if (role == ROLE_NONE)
        return err_set(err, ERR_INVALID,
                       "The role \"%s\" is unknown; there are owner, member and viewer", name);
    if (!principal_has(&request->principal, auth_role_scopes(role)))
        return err_set(err, ERR_FORBIDDEN,
                       "The role \"%s\" has more rights than yours; ask an owner to assign it",
                       name);
    *ret_role = role;
    return ERR_NONE;
}

enum err_code user_add(struct request *request, struct pg_connection *connection, int64_t tenant_id,
                       const char *email, const char *name, enum role role,
                       const char *password_hash, int64_t *ret_id, struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "INSERT INTO app_user (tenant_id, email, name, role, password_hash)"
        " VALUES ($1, $2, $3, $4, $5) RETURNING id",
        request->arena, &row, err, PG_I64(tenant_id), PG_TEXT(email), PG_TEXT(name ? name : ""),
        PG_TEXT(auth_role_name(role)), password_hash ? PG_TEXT(password_hash) : PG_NULL);
    if (code == ERR_CONFLICT)
        return err_set(err, ERR_CONFLICT,
                       "The e-mail %.100s has an account already: sign in with it, or use another",
                       email);
    if (code)
        return code;
    *ret_id = pg_get_i64(row, 0, 0);
    return ERR_NONE;
}

static void write_user(const struct request *request, struct json_response *json,
                       const struct pg_result *result, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_i64(json, "id", result, row, 0);
    json_response_cell_text(json, "email", result, row, 1);
    json_response_cell_text(json, "name", result, row, 2);
    json_response_cell_text(json, "role", result, row, 3);
    json_response_cell_text(json, "created_at", result, row, 4);
    json_response_cell_text(json, "last_sign_in_at", result, row, 5);
    json_response_bool(json, "is_me", pg_get_i64(result, row, 0) == request->principal.user_id);
    json_response_close(json, '}');
}

#define USER_COLUMNS "id, email, name, role, rfc3339(created_at), rfc3339(last_sign_in_at)"

enum err_code user_respond_list(struct request *request, struct response *response,
                                struct pg_connection *connection, int64_t tenant_id,
                                struct err *err)
{
    struct pg_result *rows;
    enum err_code code =
        team_etag_add(request, response, connection, tenant_id, tenant_id, TEAM_PEOPLE, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "SELECT " USER_COLUMNS " FROM app_user WHERE tenant_id = $1 ORDER BY id",
                           request->arena, &rows, err, PG_I64(tenant_id));
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "users", '[');
    for (int row = 0; row < pg_row_count(rows); row++)
        write_user(request, &json, rows, row);
    json_response_close(&json, ']');
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

enum err_code user_list(struct request *request, struct response *response, struct err *err)
{
    static const char *const no_query[] = {NULL};
    pg_auto connection = NULL;
    enum err_code code = request_check_query(request, no_query, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    return user_respond_list(request, response, connection, request->principal.tenant_id, err);
}

/* Locks the list until the transaction ends, so that two owners cannot step down at once. */
static enum err_code lock_user(struct request *request, struct pg_connection *connection,
                               int64_t tenant_id, int64_t id, const char **ret_email,
                               bool *ret_is_last_owner, struct err *err)
{
    struct pg_result *row;
    enum err_code code =
        team_etag_check(request, connection, tenant_id, tenant_id, TEAM_PEOPLE, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "SELECT email, role = 'owner' AND NOT EXISTS (SELECT FROM app_user o"
                           " WHERE o.tenant_id = $1 AND o.role = 'owner' AND o.id <> $2)"
                           " FROM app_user WHERE tenant_id = $1 AND id = $2",
                           request->arena, &row, err, PG_I64(tenant_id), PG_I64(id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "There is no user %" PRId64 ": the list of users shows their ids", id);
    *ret_email = pg_get_text(row, 0, 0);
    *ret_is_last_owner = pg_get_bool(row, 0, 1);
    return ERR_NONE;
}

static enum err_code refuse_last_owner(struct err *err)
{
    return err_set(err, ERR_CONFLICT,
                   "This is the tenant's last owner; make somebody else an owner first");
}

static enum err_code change_role(struct request *request, struct response *response,
                                 struct pg_connection *connection, int64_t id, enum role role,
                                 struct err *err)
{
    struct pg_result *row;
    const char *email = "";
    bool is_last_owner = false;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = lock_user(request, connection, tenant_id, id, &email, &is_last_owner, err);
    if (code)
        return code;
    if (is_last_owner && role != ROLE_OWNER)
        return refuse_last_owner(err);
    code = pg_query_values(connection, tenant_id,
                           "UPDATE app_user SET role = $3 WHERE tenant_id = $1 AND id = $2"
                           " RETURNING " USER_COLUMNS,
                           request->arena, &row, err, PG_I64(tenant_id), PG_I64(id),
                           PG_TEXT(auth_role_name(role)));
    if (code)
        return code;
    code = audit_record(connection, request, "user.role",
                        arena_printf(request->arena, "%s %s", email, auth_role_name(role)), err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    write_user(request, &json, row, 0);
    return json_response_send(&json, request, response, 200, err);
}

enum err_code user_patch(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {"role", NULL};
    int64_t id = 0;
    enum role role = ROLE_NONE;
    struct json_body *body = NULL;
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 0, &id, err);
    if (code)
        return code;
    code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = user_read_role(request, body, &role, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    code = change_role(request, response, connection, id, role, err);
    if (code)
        return code;
    auth_forget_tenant(request->server->identity->auth, request->principal.tenant_id);
    return ERR_NONE;
}

enum err_code user_remove(struct request *request, struct pg_connection *connection,
                          int64_t tenant_id, int64_t id, struct err *err)
{
    const char *email = "";
    bool is_last_owner = false;
    enum err_code code = lock_user(request, connection, tenant_id, id, &email, &is_last_owner, err);
    if (code)
        return code;
    if (is_last_owner)
        return refuse_last_owner(err);
    /* Before the row is deleted, since the log takes the actor's e-mail from it. */
    code = audit_record_for(connection, request, tenant_id, "user.delete", email, err);
    if (code)
        return code;
    return pg_query_values(connection, tenant_id,
                           "DELETE FROM app_user WHERE tenant_id = $1 AND id = $2", request->arena,
                           NULL, err, PG_I64(tenant_id), PG_I64(id));
}

enum err_code user_delete(struct request *request, struct response *response, struct err *err)
{
    int64_t id = 0;
    pg_auto connection = NULL;
    enum err_code code = json_response_path_id(request, 0, &id, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    code = user_remove(request, connection, request->principal.tenant_id, id, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    auth_forget_tenant(request->server->identity->auth, request->principal.tenant_id);
    return json_response_nothing(request, response);
}

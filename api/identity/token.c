#include "api/identity/token.h"

#include "api/core/server.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/auth.h"
#include "api/identity/identity_parts.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_NAME_BYTES = 100, MAX_LIFETIME_S = 100 * 365 * 86400LL };

const char *const token_fields[] = {"name", "scopes", "expires", NULL};

/* "never", or a number of hours, days or weeks: the same forms as for shares. */
static enum err_code parse_lifetime(const char *text, int64_t *ret_seconds, struct err *err)
{
    uint64_t number;
    int64_t unit_s = 0;
    size_t size = text ? strlen(text) : 0;
    if (size == 0 || strcmp(text, "never") == 0) {
        *ret_seconds = 0;
        return ERR_NONE;
    }
    switch (text[size - 1]) {
    case 'h':
        unit_s = 3600;
        break;
    case 'd':
        unit_s = 86400;
        break;
    case 'w':
        unit_s = 7 * 86400;
        break;
    default:
        break;
    }
    if (!unit_s || !span_parse_u64(span_of(text, size - 1), &number) || number == 0 ||
        number > (uint64_t)(MAX_LIFETIME_S / unit_s))
        return err_set(err, ERR_INVALID,
                       "The field \"expires\" must be \"never\" or a number with h, d or w, "
                       "such as \"90d\"");
    *ret_seconds = (int64_t)number * unit_s;
    return ERR_NONE;
}

static enum err_code parse_scopes(const char *const *names, size_t count, unsigned allowed,
                                  unsigned *ret_scopes, struct err *err)
{
    unsigned scopes = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned scope = principal_parse_scope(span_text(names[i]));
        if (!scope)
            return err_set(err, ERR_INVALID,
                           "The scope \"%.40s\" is unknown; there are ingest, read, share, "
                           "debuginfo and admin",
                           names[i]);
        if (scope & ~allowed || scope == SCOPE_OPERATOR)
            return err_set(err, ERR_FORBIDDEN,
                           "A token cannot get the scope \"%.40s\", because you do not have it",
                           names[i]);
        scopes |= scope;
    }
    if (!scopes)
        return err_set(err, ERR_INVALID, "The field \"scopes\" must name at least one scope");
    *ret_scopes = scopes;
    return ERR_NONE;
}

enum err_code token_read_input(const struct json_body *body, unsigned allowed_scopes,
                               struct token_input *ret_input, struct err *err)
{
    struct token_input input = {0};
    const char *expires = NULL;
    const char *const *names = NULL;
    size_t count = 0;
    enum err_code code = json_body_text(body, "name", 1, MAX_NAME_BYTES, &input.name, err);
    if (code)
        return code;
    code = json_body_texts(body, "scopes", 20, &names, &count, err);
    if (code)
        return code;
    code = parse_scopes(names, count, allowed_scopes, &input.scopes, err);
    if (code)
        return code;
    code = json_body_text(body, "expires", 0, 20, &expires, err);
    if (code)
        return code;
    code = parse_lifetime(expires, &input.lifetime_s, err);
    if (code)
        return code;
    *ret_input = input;
    return ERR_NONE;
}

/* created_by: the user who creates the token, or the user of the token that creates it, if that
 * user belongs to the same tenant. */
static const char insert_sql[] =
    "INSERT INTO token (tenant_id, created_by, name, secret_hash, scopes, expires_at)"
    " SELECT $1::bigint, coalesce((SELECT id FROM app_user WHERE id = $2 AND tenant_id = $1),"
    " (SELECT created_by FROM token WHERE id = $3 AND tenant_id = $1)), $4, $5, $6,"
    " CASE WHEN $7::bigint > 0 THEN now() + make_interval(secs => $7::bigint) END"
    " WHERE (SELECT count(*) FROM token WHERE tenant_id = $1) < $8"
    " RETURNING id, rfc3339(expires_at)";

enum err_code token_create(struct request *request, struct response *response,
                           struct pg_connection *connection, int64_t tenant_id,
                           const struct token_input *input, struct err *err)
{
    char token[DIGEST_TOKEN_BYTES];
    uint8_t hash[DIGEST_BYTES];
    struct pg_result *row;
    digest_random_token(token);
    digest_sha256(span_text(token), hash);
    enum err_code code = pg_query_values(
        connection, tenant_id, insert_sql, request->arena, &row, err, PG_I64(tenant_id),
        PG_I64(request->principal.user_id), PG_I64(request->principal.token_id),
        PG_TEXT(input->name), PG_BYTES(span_of(hash, sizeof(hash))), PG_I64(input->scopes),
        PG_I64(input->lifetime_s), PG_I64(TOKEN_MAX_PER_TENANT));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_CONFLICT, "A tenant has at most %d tokens; revoke unused ones",
                       TOKEN_MAX_PER_TENANT);
    const char *id = pg_get_text(row, 0, 0);
    code = audit_record_for(connection, request, tenant_id, "token.create",
                            arena_printf(request->arena, "%s %s", id, input->name), err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_cell_i64(&json, "id", row, 0, 0);
    json_response_text(&json, "token", token);
    json_response_text(&json, "name", input->name);
    json_response_scopes(&json, "scopes", input->scopes);
    json_response_cell_text(&json, "expires_at", row, 0, 1);
    json_response_close(&json, '}');
    response_add(request, response, "location",
                 arena_printf(request->arena, "/api/v1/tokens/%s", id));
    return json_response_send(&json, request, response, 201, err);
}

/* A token needs the scope admin to manage tokens. */
static enum err_code check_manager(const struct request *request, struct err *err)
{
    if (request->principal.kind == PRINCIPAL_USER ||
        principal_has(&request->principal, SCOPE_ADMIN))
        return ERR_NONE;
    return err_set(err, ERR_FORBIDDEN, "The token lacks the scope \"admin\" that this needs");
}

enum err_code token_post(struct request *request, struct response *response, struct err *err)
{
    struct json_body *body = NULL;
    struct token_input input;
    pg_auto connection = NULL;
    enum err_code code = check_manager(request, err);
    if (code)
        return code;
    code = json_body_parse(request, token_fields, &body, err);
    if (code)
        return code;
    code = token_read_input(body, request->principal.scopes, &input, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    code = token_create(request, response, connection, request->principal.tenant_id, &input, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

static void write_token(const struct request *request, struct json_response *json,
                        const struct pg_result *result, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_i64(json, "id", result, row, 0);
    json_response_cell_text(json, "name", result, row, 1);
    json_response_scopes(json, "scopes", (unsigned)pg_get_i64(result, row, 2));
    json_response_cell_text(json, "created_by", result, row, 3);
    json_response_cell_text(json, "created_at", result, row, 4);
    json_response_cell_text(json, "expires_at", result, row, 5);
    json_response_cell_text(json, "last_used_at", result, row, 6);
    json_response_bool(json, "is_current",
                       pg_get_i64(result, row, 0) == request->principal.token_id);
    json_response_close(json, '}');
}

enum err_code token_respond_list(struct request *request, struct response *response,
                                 struct pg_connection *connection, int64_t tenant_id,
                                 int64_t user_id, struct err *err)
{
    struct pg_result *rows;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "SELECT t.id, t.name, t.scopes, u.email, rfc3339(t.created_at), rfc3339(t.expires_at),"
        " rfc3339(t.last_used_at) FROM token t LEFT JOIN app_user u ON u.id = t.created_by"
        " WHERE t.tenant_id = $1 AND ($2::bigint = 0 OR t.created_by = $2) ORDER BY t.id",
        request->arena, &rows, err, PG_I64(tenant_id), PG_I64(user_id));
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "tokens", '[');
    for (int row = 0; row < pg_row_count(rows); row++)
        write_token(request, &json, rows, row);
    json_response_close(&json, ']');
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

enum err_code token_list(struct request *request, struct response *response, struct err *err)
{
    static const char *const no_query[] = {NULL};
    pg_auto connection = NULL;
    const struct principal *who = &request->principal;
    enum err_code code = request_check_query(request, no_query, err);
    if (code)
        return code;
    code = check_manager(request, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    /* check_manager accepts users and principals with the scope admin: a user's number is not 0. */
    return token_respond_list(request, response, connection, who->tenant_id,
                              principal_has(who, SCOPE_ADMIN) ? 0 : who->user_id, err);
}

static enum err_code record_revoke(struct request *request, struct pg_connection *connection,
                                   int64_t tenant_id, int64_t id, const struct pg_result *row,
                                   struct err *err)
{
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND, "There is no token %" PRId64, id);
    return audit_record_for(
        connection, request, tenant_id, "token.revoke",
        arena_printf(request->arena, "%" PRId64 " %s", id, pg_get_text(row, 0, 0)), err);
}

enum err_code token_revoke(struct request *request, struct pg_connection *connection,
                           int64_t tenant_id, int64_t id, struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        connection, tenant_id, "DELETE FROM token WHERE tenant_id = $1 AND id = $2 RETURNING name",
        request->arena, &row, err, PG_I64(tenant_id), PG_I64(id));
    return code ? code : record_revoke(request, connection, tenant_id, id, row, err);
}

/* A token may always revoke itself. */
static enum err_code delete_row(struct request *request, struct pg_connection *connection,
                                int64_t id, struct err *err)
{
    struct pg_result *row;
    const struct principal *who = &request->principal;
    enum err_code code = pg_query_values(
        connection, who->tenant_id,
        "DELETE FROM token WHERE tenant_id = $1 AND id = $2 AND ($3 OR created_by = $4 OR id = $5)"
        " RETURNING name",
        request->arena, &row, err, PG_I64(who->tenant_id), PG_I64(id),
        PG_BOOL(principal_has(who, SCOPE_ADMIN)), PG_I64(who->user_id), PG_I64(who->token_id));
    return code ? code : record_revoke(request, connection, who->tenant_id, id, row, err);
}

enum err_code token_delete(struct request *request, struct response *response, struct err *err)
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
    code = delete_row(request, connection, id, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    auth_forget_token(request->server->identity->auth, id);
    return json_response_nothing(request, response);
}

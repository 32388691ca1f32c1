#include "api/identity/invitation.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/auth.h"
#include "api/identity/password.h"
#include "api/identity/session.h"
#include "api/identity/team_etag.h"
#include "api/identity/tenant.h"
#include "api/identity/user.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>

enum err_code invitation_list(struct request *request, struct response *response, struct err *err)
{
    static const char *const no_query[] = {NULL};
    struct pg_result *rows;
    pg_auto connection = NULL;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = request_check_query(request, no_query, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code =
        team_etag_add(request, response, connection, tenant_id, tenant_id, TEAM_INVITATIONS, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, tenant_id,
        "SELECT i.id, i.email, i.role, u.email, rfc3339(i.created_at), rfc3339(i.expires_at)"
        " FROM invitation i LEFT JOIN app_user u ON u.id = i.created_by"
        " WHERE i.tenant_id = $1 AND i.expires_at > now() ORDER BY i.id",
        request->arena, &rows, err, PG_I64(tenant_id));
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "invitations", '[');
    for (int row = 0; row < pg_row_count(rows); row++) {
        json_response_open(&json, NULL, '{');
        json_response_cell_i64(&json, "id", rows, row, 0);
        json_response_cell_text(&json, "email", rows, row, 1);
        json_response_cell_text(&json, "role", rows, row, 2);
        json_response_cell_text(&json, "created_by", rows, row, 3);
        json_response_cell_text(&json, "created_at", rows, row, 4);
        json_response_cell_text(&json, "expires_at", rows, row, 5);
        json_response_close(&json, '}');
    }
    json_response_close(&json, ']');
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

/* Locks the tenant for invitations until the transaction ends: an e-mail has one invitation. */
static enum err_code begin_alone(struct request *request, struct pg_connection *connection,
                                 struct err *err)
{
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = tenant_begin(connection, tenant_id, request->arena, err);
    return code ? code
                : team_etag_check(request, connection, tenant_id, tenant_id, TEAM_INVITATIONS, err);
}

/* Accounts of other tenants are not revealed here: they are found when the link is used. */
static enum err_code check_is_no_member(struct request *request, struct pg_connection *connection,
                                        const char *email, struct err *err)
{
    struct pg_result *row;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "SELECT role FROM app_user WHERE tenant_id = $1 AND lower(email) = lower($2)",
        request->arena, &row, err, PG_I64(tenant_id), PG_TEXT(email));
    if (!code && pg_row_count(row) > 0)
        return err_set(err, ERR_CONFLICT,
                       "%.100s is a member of this team already, as %s: the list of its people "
                       "shows the role, which can be changed there",
                       email, pg_get_text(row, 0, 0));
    return code;
}

static enum err_code withdraw_earlier(struct request *request, struct pg_connection *connection,
                                      const char *email, struct err *err)
{
    struct pg_result *row;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code =
        pg_query_values(connection, tenant_id,
                        "DELETE FROM invitation WHERE tenant_id = $1 AND lower(email) = lower($2)",
                        request->arena, &row, err, PG_I64(tenant_id), PG_TEXT(email));
    if (!code && pg_affected(row) > 0)
        code = audit_record(connection, request, "invitation.delete", email, err);
    return code;
}

static enum err_code create_invitation(struct request *request, struct response *response,
                                       struct pg_connection *connection, const char *email,
                                       enum role role, struct err *err)
{
    char secret[DIGEST_SECRET_BYTES];
    uint8_t hash[DIGEST_BYTES];
    struct pg_result *row;
    const struct principal *who = &request->principal;
    digest_random_secret(secret);
    digest_sha256(span_text(secret), hash);
    enum err_code code = pg_query_values(
        connection, who->tenant_id,
        "INSERT INTO invitation (tenant_id, created_by, email, role, secret_hash, expires_at)"
        " SELECT $1::bigint, coalesce(nullif($2::bigint, 0),"
        " (SELECT created_by FROM token WHERE id = $3)), $4, $5, $6,"
        " now() + make_interval(secs => $7::bigint)"
        " WHERE (SELECT count(*) FROM invitation WHERE tenant_id = $1) < $8"
        " RETURNING id, rfc3339(expires_at)",
        request->arena, &row, err, PG_I64(who->tenant_id), PG_I64(who->user_id),
        PG_I64(who->token_id), PG_TEXT(email), PG_TEXT(auth_role_name(role)),
        PG_BYTES(span_of(hash, sizeof(hash))),
        PG_I64(request->server->settings->invitation_lifetime_s),
        PG_I64(INVITATION_MAX_PER_TENANT));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_CONFLICT,
                       "A tenant has at most %d open invitations; withdraw unused ones",
                       INVITATION_MAX_PER_TENANT);
    code = audit_record(connection, request, "invitation.create", email, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_cell_i64(&json, "id", row, 0, 0);
    json_response_text(&json, "email", email);
    json_response_text(&json, "role", auth_role_name(role));
    json_response_cell_text(&json, "expires_at", row, 0, 1);
    json_response_text(&json, "url",
                       arena_printf(request->arena, "%s/invite#%s",
                                    request->server->settings->public_url, secret));
    json_response_close(&json, '}');
    response_add(request, response, "location",
                 arena_printf(request->arena, "/api/v1/invitations/%s", pg_get_text(row, 0, 0)));
    return json_response_send(&json, request, response, 201, err);
}

enum err_code invitation_post(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {"email", "role", NULL};
    const char *email = "";
    enum role role = ROLE_NONE;
    struct json_body *body = NULL;
    pg_auto connection = NULL;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "email", 1, USER_MAX_EMAIL_BYTES, &email, err);
    if (code)
        return code;
    code = user_check_email(email, err);
    if (code)
        return code;
    code = user_read_role(request, body, &role, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = begin_alone(request, connection, err);
    if (code)
        return code;
    code = check_is_no_member(request, connection, email, err);
    if (code)
        return code;
    code = withdraw_earlier(request, connection, email, err);
    if (code)
        return code;
    return create_invitation(request, response, connection, email, role, err);
}

enum err_code invitation_delete(struct request *request, struct response *response, struct err *err)
{
    int64_t id = 0;
    struct pg_result *row;
    pg_auto connection = NULL;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = json_response_path_id(request, 0, &id, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = begin_alone(request, connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "DELETE FROM invitation WHERE tenant_id = $1 AND id = $2"
                           " RETURNING email",
                           request->arena, &row, err, PG_I64(tenant_id), PG_I64(id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "There is no invitation %" PRId64 ": look at the list of open ones", id);
    code = audit_record(connection, request, "invitation.delete", pg_get_text(row, 0, 0), err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    return json_response_nothing(request, response);
}

/* ---- accepting ---- */

struct found_invitation {
    int64_t id;
    int64_t tenant_id;
    const char *email;
    enum role role;
};

static enum err_code find_invitation(struct request *request, const char *secret,
                                     struct found_invitation *ret_found, struct err *err)
{
    uint8_t hash[DIGEST_BYTES];
    struct pg_result *row;
    pg_auto connection = NULL;
    digest_sha256(span_text(secret), hash);
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "SELECT id, tenant_id, email, role FROM invitation_find($1)",
                           request->arena, &row, err, PG_BYTES(span_of(hash, sizeof(hash))));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "The invitation has been used already, withdrawn or has expired; ask for a "
                       "new one");
    *ret_found = (struct found_invitation){
        .id = pg_get_i64(row, 0, 0),
        .tenant_id = pg_get_i64(row, 0, 1),
        .email = pg_get_text(row, 0, 2),
        .role = auth_role_parse(span_text(pg_get_text(row, 0, 3))),
    };
    return ERR_NONE;
}

/* Whether the team's build ids are sent to the operator's list of debuginfod servers. */
static enum err_code uses_public_debuginfod(const struct request *request, int64_t tenant_id,
                                            bool *ret_does, struct err *err)
{
    struct pg_result *rows;
    pg_auto connection = NULL;
    *ret_does = false;
    if (!settings_uses_debuginfod(request->server->settings))
        return ERR_NONE;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "SELECT FROM debuginfo_policy WHERE tenant_id = $1"
                           " AND mode <> 'public'",
                           request->arena, &rows, err, PG_I64(tenant_id));
    if (code)
        return code;
    *ret_does = pg_row_count(rows) == 0;
    return ERR_NONE;
}

enum err_code invitation_look(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {"token", NULL};
    const char *token = "";
    struct json_body *body = NULL;
    struct found_invitation found = {0};
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "token", 1, 200, &token, err);
    if (code)
        return code;
    code = find_invitation(request, token, &found, err);
    bool is_public_debuginfod = false;
    if (code)
        return code;
    code = uses_public_debuginfod(request, found.tenant_id, &is_public_debuginfod, err);
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_text(&json, "email", found.email);
    json_response_text(&json, "role", auth_role_name(found.role));
    json_response_bool(&json, "queries_public_debuginfod", is_public_debuginfod);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

/* The invitation is deleted first: if two people use one link, the second finds none. */
static enum err_code join_team(struct request *request, struct pg_connection *connection,
                               const struct found_invitation *found, const char *name,
                               const char *password, const char **ret_secret, struct err *err)
{
    struct pg_result *row;
    int64_t user_id = 0;
    enum err_code code = pg_query_values(
        connection, found->tenant_id, "DELETE FROM invitation WHERE tenant_id = $1 AND id = $2",
        request->arena, &row, err, PG_I64(found->tenant_id), PG_I64(found->id));
    if (code)
        return code;
    if (pg_affected(row) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "The invitation has just been used: sign in with the account that it "
                       "created, or ask for another");
    code = user_add(request, connection, found->tenant_id, found->email, name, found->role,
                    password, &user_id, err);
    if (code)
        return code;
    code = session_start(request, connection, found->tenant_id, user_id, "invitation", ret_secret,
                         err);
    if (code)
        return code;
    code = audit_record(connection, request, "invitation.accept", found->email, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

static enum err_code accept_invitation(struct request *request, struct response *response,
                                       const char *token, const char *password, const char *name,
                                       struct err *err)
{
    char hash[DIGEST_PASSWORD_BYTES];
    struct found_invitation found = {0};
    const char *secret = NULL;
    enum err_code code = find_invitation(request, token, &found, err);
    if (code)
        return code;
    code = password_hash(request->server->limits->rate_limiter, SLOT_PASSWORD,
                         span_text(request->address), span_text(password), hash, err);
    if (code)
        return code;
    pg_auto connection = NULL;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, found.tenant_id, request->arena, err);
    if (code)
        return code;
    code = join_team(request, connection, &found, name, hash, &secret, err);
    if (code)
        return code;
    return session_respond(request, response, connection, 201, secret, err);
}

enum err_code invitation_accept(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {"token", "password", "name", NULL};
    const char *token = "", *password = "", *name = NULL;
    struct json_body *body = NULL;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "token", 1, 200, &token, err);
    if (code)
        return code;
    code = json_body_text(body, "password", 1, PASSWORD_MAX_BYTES, &password, err);
    if (code)
        return code;
    code = password_check(span_text(password), err);
    if (code)
        return code;
    code = json_body_text(body, "name", 0, USER_MAX_NAME_BYTES, &name, err);
    if (code)
        return code;
    return accept_invitation(request, response, token, password, name, err);
}

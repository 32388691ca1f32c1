#include "api/identity/session.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/http/local_ca.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/auth.h"
#include "api/identity/device_cookie.h"
#include "api/identity/failed_sign_ins.h"
#include "api/identity/identity_parts.h"
#include "api/identity/password.h"
#include "api/identity/password_attempt.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_EMAIL_BYTES = 254, USER_AGENT_BYTES = 300 };

/* ---- the cookie ---- */

static void set_cookie(struct request *request, struct response *response, const char *secret,
                       int64_t lifetime_s)
{
    response_add(request, response, "set-cookie",
                 arena_printf(request->arena,
                              AUTH_COOKIE "=%s; Path=/; Secure; HttpOnly; SameSite=Lax; "
                                          "Max-Age=%" PRId64,
                              secret, lifetime_s));
}

static void clear_cookie(struct request *request, struct response *response)
{
    set_cookie(request, response, "", 0);
}

static struct span hash_of(struct request *request, struct span secret)
{
    uint8_t *hash = arena_new(request->arena, uint8_t, DIGEST_BYTES);
    digest_sha256(secret, hash);
    return span_of(hash, DIGEST_BYTES);
}

/* ---- the signed-in user as JSON ---- */

static const char *const kind_names[] = {
    [PRINCIPAL_ANONYMOUS] = "anonymous",
    [PRINCIPAL_TOKEN] = "token",
    [PRINCIPAL_USER] = "user",
};

static enum err_code write_tenant(struct request *request, struct pg_connection *connection,
                                  struct json_response *json, struct err *err)
{
    struct pg_result *row;
    int64_t tenant_id = request->principal.tenant_id;
    enum err_code code =
        pg_query_values(connection, tenant_id, "SELECT id, name FROM tenant WHERE id = $1",
                        request->arena, &row, err, PG_I64(tenant_id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "Your tenant has been deleted: ask the operator of this server");
    json_response_open(json, "tenant", '{');
    json_response_cell_i64(json, "id", row, 0, 0);
    json_response_cell_text(json, "name", row, 0, 1);
    json_response_close(json, '}');
    return ERR_NONE;
}

/* response: of a sign-in, which marks the browser as known to the account; otherwise NULL. */
static enum err_code write_user(struct request *request, struct response *response,
                                struct pg_connection *connection, struct json_response *json,
                                struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        connection, request->principal.tenant_id,
        "SELECT id, email, name, role, password_hash IS NOT NULL, lower(email) FROM app_user"
        " WHERE id = $1",
        request->arena, &row, err, PG_I64(request->principal.user_id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(
            err, ERR_UNAUTHENTICATED,
            "Your account has been removed: ask an owner of your team for an invitation");
    json_response_open(json, "user", '{');
    json_response_cell_i64(json, "id", row, 0, 0);
    json_response_cell_text(json, "email", row, 0, 1);
    json_response_cell_text(json, "name", row, 0, 2);
    json_response_cell_text(json, "role", row, 0, 3);
    json_response_bool(json, "has_password", pg_get_bool(row, 0, 4));
    json_response_close(json, '}');
    return response ? device_cookie_add(request, response, pg_get_text(row, 0, 5), err) : ERR_NONE;
}

static enum err_code write_token(struct request *request, struct pg_connection *connection,
                                 struct json_response *json, struct err *err)
{
    struct pg_result *row;
    enum err_code code =
        pg_query_values(connection, request->principal.tenant_id,
                        "SELECT id, name, rfc3339(expires_at) FROM token WHERE id = $1",
                        request->arena, &row, err, PG_I64(request->principal.token_id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "The token has been revoked: make a new one under Settings");
    json_response_open(json, "token", '{');
    json_response_cell_i64(json, "id", row, 0, 0);
    json_response_cell_text(json, "name", row, 0, 1);
    json_response_cell_text(json, "expires_at", row, 0, 2);
    json_response_close(json, '}');
    return ERR_NONE;
}

static enum err_code write_principal(struct request *request, struct response *response,
                                     struct pg_connection *connection, struct json_response *json,
                                     struct err *err)
{
    json_response_text(json, "kind", kind_names[request->principal.kind]);
    switch (request->principal.kind) {
    case PRINCIPAL_ANONYMOUS:
        json_response_null(json, "tenant");
        return ERR_NONE;
    case PRINCIPAL_TOKEN: {
        enum err_code code = write_token(request, connection, json, err);
        return code ? code : write_tenant(request, connection, json, err);
    }
    case PRINCIPAL_USER: {
        enum err_code code = write_user(request, response, connection, json, err);
        return code ? code : write_tenant(request, connection, json, err);
    }
    }
    return ERR_NONE;
}

/* The CSRF token of the session in the request or its response; null without a session. */
static void write_csrf_token(const struct request *request, const char *secret,
                             struct json_response *json)
{
    char token[DIGEST_HEX_BYTES];
    struct span session = secret ? span_text(secret) : request_cookie(request, AUTH_COOKIE);
    if (request->principal.kind == PRINCIPAL_USER)
        auth_csrf_token(session, token);
    json_response_text(json, "csrf_token",
                       request->principal.kind == PRINCIPAL_USER ? token : NULL);
}

enum err_code session_respond(struct request *request, struct response *response,
                              struct pg_connection *connection, int status, const char *secret,
                              struct err *err)
{
    struct quota quota;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    if (secret)
        set_cookie(request, response, secret, request->server->settings->session_lifetime_s);
    enum err_code code = write_principal(request, secret ? response : NULL, connection, &json, err);
    if (!code)
        code = quota_read(request->server, connection, request->principal.tenant_id, request->arena,
                          &quota, err);
    if (code)
        return code;
    json_response_text(&json, "role", auth_role_name(request->principal.role));
    json_response_scopes(&json, "scopes", request->principal.scopes);
    write_csrf_token(request, secret, &json);
    json_response_bool(&json, "anonymous_sharing", request->server->settings->anonymous_sharing);
    json_response_bool(&json, "has_local_ca", local_ca_is_used(request->server->settings));
    json_response_open(&json, "limits", '{');
    json_response_i64(&json, "max_upload_bytes", quota.max_upload_bytes);
    json_response_close(&json, '}');
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, status, err);
}

enum err_code session_get(struct request *request, struct response *response, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    bool has_ended = request->principal.kind == PRINCIPAL_ANONYMOUS &&
                     request_cookie(request, AUTH_COOKIE).size > 0;
    if (has_ended)
        clear_cookie(request, response);
    return session_respond(request, response, connection, 200, NULL, err);
}

/* ---- signing in ---- */

/* The browser drops the cookie that it sent, and any other holder of it must lose the session. */
static enum err_code end_shown_session(struct request *request, struct pg_connection *connection,
                                       int64_t tenant_id, struct err *err)
{
    struct span secret = request_cookie(request, AUTH_COOKIE);
    if (!digest_is_secret(secret))
        return ERR_NONE;
    return pg_query_values(connection, tenant_id, "SELECT session_end($1)", request->arena, NULL,
                           err, PG_BYTES(hash_of(request, secret)));
}

enum err_code session_start(struct request *request, struct pg_connection *connection,
                            int64_t tenant_id, int64_t user_id, const char *how,
                            const char **ret_secret, struct err *err)
{
    char secret[DIGEST_SECRET_BYTES];
    struct pg_result *row;
    digest_random_secret(secret);
    struct span agent = request_field(request, "user-agent");
    if (agent.size > USER_AGENT_BYTES || !span_is_utf8(agent))
        agent.size = 0;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "WITH before AS (SELECT last_sign_in_at FROM app_user WHERE id = $2),"
        " signed_in AS (UPDATE app_user SET last_sign_in_at = now() WHERE id = $2"
        " RETURNING id, role, is_operator), started AS (INSERT INTO session"
        " (tenant_id, user_id, secret_hash, expires_at, address, user_agent, previous_sign_in_at)"
        " SELECT $1::bigint, id, $3, now() + make_interval(secs => $4::bigint), $5, $6,"
        " last_sign_in_at FROM signed_in, before)"
        " SELECT role, is_operator FROM signed_in",
        request->arena, &row, err, PG_I64(tenant_id), PG_I64(user_id),
        PG_BYTES(hash_of(request, span_text(secret))),
        PG_I64(request->server->settings->session_lifetime_s), PG_TEXT(request->address),
        PG_SPAN(agent));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "The account has been removed: ask an owner of your team for an invitation");
    code = end_shown_session(request, connection, tenant_id, err);
    if (code)
        return code;
    enum role role = auth_role_parse(span_text(pg_get_text(row, 0, 0)));
    request->principal = (struct principal){
        .kind = PRINCIPAL_USER,
        .tenant_id = tenant_id,
        .user_id = user_id,
        .role = role,
        .scopes = auth_role_scopes(role) | (pg_get_bool(row, 0, 1) ? (unsigned)SCOPE_OPERATOR : 0),
    };
    *ret_secret = arena_strdup(request->arena, secret);
    return audit_record(connection, request, "session.create", how, err);
}

static enum err_code finish_sign_in(struct request *request, struct response *response,
                                    struct pg_connection *connection, int64_t tenant_id,
                                    int64_t user_id, const char *how, struct err *err)
{
    const char *secret;
    enum err_code code = tenant_begin(connection, tenant_id, request->arena, err);
    if (code)
        return code;
    code = session_start(request, connection, tenant_id, user_id, how, &secret, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    return session_respond(request, response, connection, 200, secret, err);
}

static enum err_code sign_in_by_code(struct request *request, struct response *response,
                                     const char *login_code, struct err *err)
{
    struct pg_result *row;
    pg_auto connection = NULL;
    struct span hash = hash_of(request, span_text(login_code));
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "SELECT user_id, tenant_id FROM login_code_take($1)", request->arena,
                           &row, err, PG_BYTES(hash));
    if (code)
        return code;
    if (pg_row_count(row) == 0) {
        pg_give(connection);
        connection = NULL;
        audit_record_refused(request, TENANT_ANONYMOUS, "session.refuse", "one-time code");
        return err_set(err, ERR_UNAUTHENTICATED,
                       "The sign-in link has been used already or has expired; ask for a new one");
    }
    return finish_sign_in(request, response, connection, pg_get_i64(row, 0, 1),
                          pg_get_i64(row, 0, 0), "one-time code", err);
}

struct account {
    int64_t user_id; /* 0: no account has that e-mail */
    int64_t tenant_id;
    const char *password_hash; /* "" for none */
    const char *limit_key;     /* the e-mail as the database compares it */
};

/* The connection is returned before scrypt runs: a slow check must not hold it. */
static enum err_code find_account(struct request *request, const char *email,
                                  struct account *ret_account, struct err *err)
{
    struct pg_result *row;
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "SELECT id, tenant_id, password_hash, lower($1::text)"
                           " FROM (SELECT) always LEFT JOIN app_user_find($1::text) ON true",
                           request->arena, &row, err, PG_TEXT(email));
    if (code)
        return code;
    bool is_found = !pg_is_null(row, 0, 0);
    *ret_account = (struct account){
        .user_id = is_found ? pg_get_i64(row, 0, 0) : 0,
        .tenant_id = is_found ? pg_get_i64(row, 0, 1) : 0,
        .password_hash = is_found ? pg_get_text(row, 0, 2) : "",
        .limit_key = pg_get_text(row, 0, 3),
    };
    return ERR_NONE;
}

/* On ERR_UNAUTHENTICATED the failure is recorded for the owner of the account, if there is one. */
static enum err_code verify_attempt(struct request *request, const struct account *account,
                                    struct span password, struct err *err)
{
    struct password_attempt attempt = {
        .subject = PASSWORD_OF_ACCOUNT,
        .key = span_text(account->limit_key),
        .address = span_text(request->address),
    };
    bool matches = false;
    enum err_code code = device_cookie_find(request, account->limit_key, &attempt.device, err);
    if (!code)
        code = password_attempt_verify(request->server->identity->passwords,
                                       request->server->limits->rate_limiter, &attempt, password,
                                       account->password_hash, &matches, err);
    if (code || matches)
        return code;
    /* The same is written with and without an account, so that both take the same time. */
    failed_sign_ins_record(request, account->user_id ? account->tenant_id : TENANT_ANONYMOUS,
                           account->user_id);
    return err_set(err, ERR_UNAUTHENTICATED,
                   "The e-mail or the password is wrong: type both again, or ask the operator "
                   "for a sign-in link");
}

static enum err_code sign_in_by_password(struct request *request, struct response *response,
                                         const char *email, const char *password, struct err *err)
{
    struct account account = {0};
    enum err_code code = find_account(request, email, &account, err);
    if (!code)
        code = verify_attempt(request, &account, span_text(password), err);
    /* An unknown e-mail may be anything, even a password typed into the wrong field, so it is not
     * logged. */
    if (code == ERR_UNAUTHENTICATED)
        audit_record_refused(request, account.user_id ? account.tenant_id : TENANT_ANONYMOUS,
                             "session.refuse",
                             account.user_id ? account.limit_key : "unknown account");
    if (code)
        return code;
    pg_auto connection = NULL;
    code = pg_take(request->server->database, &connection, err);
    return code ? code
                : finish_sign_in(request, response, connection, account.tenant_id, account.user_id,
                                 "password", err);
}

enum err_code session_post(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {"email", "password", "code", NULL};
    const char *email = "", *password = "", *login_code = NULL;
    struct json_body *body;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "code", 0, 200, &login_code, err);
    if (code)
        return code;
    if (login_code)
        return sign_in_by_code(request, response, login_code, err);
    code = json_body_text(body, "email", 1, MAX_EMAIL_BYTES, &email, err);
    if (code)
        return code;
    code = json_body_text(body, "password", 1, PASSWORD_MAX_BYTES, &password, err);
    if (code)
        return code;
    return sign_in_by_password(request, response, email, password, err);
}

/* ---- signing out ---- */

enum err_code session_delete(struct request *request, struct response *response, struct err *err)
{
    pg_auto connection = NULL;
    struct principal *who = &request->principal;
    clear_cookie(request, response);
    if (who->kind != PRINCIPAL_USER)
        return json_response_nothing(request, response);
    struct span hash = hash_of(request, request_cookie(request, AUTH_COOKIE));
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, who->tenant_id, request->arena, err);
    if (code)
        return code;
    code = pg_query_values(connection, who->tenant_id,
                           "DELETE FROM session WHERE tenant_id = $1 AND secret_hash = $2",
                           request->arena, NULL, err, PG_I64(who->tenant_id), PG_BYTES(hash));
    if (code)
        return code;
    code = audit_record(connection, request, "session.delete", "", err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    return json_response_nothing(request, response);
}

/* ---- changing the password ---- */

static enum err_code find_own_account(struct request *request, struct account *ret_account,
                                      struct err *err)
{
    struct pg_result *row;
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, request->principal.tenant_id,
                           "SELECT lower(email), password_hash FROM app_user WHERE id = $1",
                           request->arena, &row, err, PG_I64(request->principal.user_id));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return err_set(
            err, ERR_UNAUTHENTICATED,
            "Your account has been removed: ask an owner of your team for an invitation");
    *ret_account = (struct account){
        .user_id = request->principal.user_id,
        .tenant_id = request->principal.tenant_id,
        .password_hash = pg_get_text(row, 0, 1),
        .limit_key = pg_get_text(row, 0, 0),
    };
    return ERR_NONE;
}

/* Other sessions end, so a person who knew the old password is signed out. */
static enum err_code store_password(struct request *request, const char *old_hash,
                                    const char *new_hash, struct err *err)
{
    struct pg_result *row;
    pg_auto connection = NULL;
    const struct principal *who = &request->principal;
    struct span session = hash_of(request, request_cookie(request, AUTH_COOKIE));
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, who->tenant_id, request->arena, err);
    if (code)
        return code;
    code = pg_query_values(connection, who->tenant_id,
                           "UPDATE app_user SET password_hash = $3 WHERE tenant_id = $1"
                           " AND id = $2 AND coalesce(password_hash, '') = $4",
                           request->arena, &row, err, PG_I64(who->tenant_id), PG_I64(who->user_id),
                           PG_TEXT(new_hash), PG_TEXT(old_hash));
    if (code)
        return code;
    if (pg_affected(row) == 0)
        return err_set(err, ERR_CONFLICT,
                       "The password has just been changed elsewhere: sign in with the new one");
    code = pg_query_values(
        connection, who->tenant_id,
        "DELETE FROM session WHERE tenant_id = $1 AND user_id = $2 AND secret_hash <> $3",
        request->arena, NULL, err, PG_I64(who->tenant_id), PG_I64(who->user_id), PG_BYTES(session));
    if (code)
        return code;
    code = audit_record(connection, request, "user.password", "", err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

/* *ret_old is "" if the request has none. */
static enum err_code read_passwords(struct request *request, const char **ret_old,
                                    const char **ret_new, struct err *err)
{
    static const char *const known[] = {"old", "new", NULL};
    const char *old_password = NULL, *new_password = "";
    struct json_body *body;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "old", 0, PASSWORD_MAX_BYTES, &old_password, err);
    if (code)
        return code;
    code = json_body_text(body, "new", 1, PASSWORD_MAX_BYTES, &new_password, err);
    if (code)
        return code;
    *ret_old = old_password ? old_password : "";
    *ret_new = new_password;
    return password_check(span_text(new_password), err);
}

/* An account without a password accepts any old one. */
static enum err_code check_old_password(struct request *request, const char *old_password,
                                        struct account *ret_account, struct err *err)
{
    enum err_code code = find_own_account(request, ret_account, err);
    if (code || ret_account->password_hash[0] == '\0')
        return code;
    return verify_attempt(request, ret_account, span_text(old_password), err);
}

enum err_code session_post_password(struct request *request, struct response *response,
                                    struct err *err)
{
    const char *old_password, *new_password;
    struct account account = {.password_hash = ""};
    char new_hash[DIGEST_PASSWORD_BYTES];
    if (request->principal.kind != PRINCIPAL_USER)
        return err_set(err, ERR_FORBIDDEN, "A token has no password; sign in to change yours");
    enum err_code code = read_passwords(request, &old_password, &new_password, err);
    if (code)
        return code;
    code = check_old_password(request, old_password, &account, err);
    if (code == ERR_UNAUTHENTICATED)
        return err_set(err, ERR_FORBIDDEN, "The old password is wrong: type it again");
    if (code)
        return code;
    code = password_hash(request->server->limits->rate_limiter, SLOT_PASSWORD,
                         span_text(request->address), span_text(new_password), new_hash, err);
    if (code)
        return code;
    code = store_password(request, account.password_hash, new_hash, err);
    if (code)
        return code;
    return json_response_nothing(request, response);
}

/*
 * token: API tokens of a tenant: /api/v1/tokens.
 *
 * A token is shown once, when it is created; only its SHA-256 is stored. It may have only scopes
 * that its creator has, and never SCOPE_OPERATOR. Users see and revoke the tokens that they
 * created; with the scope admin, all tokens of the tenant. When a user is removed, so are the
 * tokens that the user created; when a user gets a lower role, these tokens lose the scopes that
 * the role lacks.
 */
#ifndef API_IDENTITY_TOKEN_H
#define API_IDENTITY_TOKEN_H

#include "api/http/request.h"

struct json_body;
struct pg_connection;

enum { TOKEN_MAX_PER_TENANT = 500 };

enum err_code token_list(struct request *request, struct response *response, struct err *err);
enum err_code token_post(struct request *request, struct response *response, struct err *err);
enum err_code token_delete(struct request *request, struct response *response, struct err *err);

/* Responds with the list of a tenant's tokens: those that one user created, or all (user_id 0). */
enum err_code token_respond_list(struct request *request, struct response *response,
                                 struct pg_connection *connection, int64_t tenant_id,
                                 int64_t user_id, struct err *err) MUST_USE;
/* Revokes any token of the tenant in the caller's transaction; after the commit the caller calls
 * auth_forget_token. Errors: ERR_NOT_FOUND. */
enum err_code token_revoke(struct request *request, struct pg_connection *connection,
                           int64_t tenant_id, int64_t id, struct err *err) MUST_USE;

/* The fields of a new token: name, scopes, expires. */
struct token_input {
    const char *name;
    unsigned scopes;
    int64_t lifetime_s; /* 0: for ever */
};
extern const char *const token_fields[];

/* Reads and checks the fields; scopes that are not in allowed_scopes are refused. Errors:
 * ERR_INVALID, ERR_FORBIDDEN. */
enum err_code token_read_input(const struct json_body *body, unsigned allowed_scopes,
                               struct token_input *ret_input, struct err *err) MUST_USE;
/* Creates the token in the caller's transaction and writes the 201 response; the caller commits. */
enum err_code token_create(struct request *request, struct response *response,
                           struct pg_connection *connection, int64_t tenant_id,
                           const struct token_input *input, struct err *err) MUST_USE;

#endif

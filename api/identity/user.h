/*
 * user: the people of a tenant: /api/v1/users. A tenant always has at least one owner.
 */
#ifndef API_IDENTITY_USER_H
#define API_IDENTITY_USER_H

#include "api/http/request.h"

struct json_body;
struct pg_connection;

enum { USER_MAX_EMAIL_BYTES = 254, USER_MAX_NAME_BYTES = 100 };

enum err_code user_list(struct request *request, struct response *response, struct err *err);
enum err_code user_patch(struct request *request, struct response *response, struct err *err);
enum err_code user_delete(struct request *request, struct response *response, struct err *err);

/* Responds with the list of a tenant's users. On a connection of server->jobs_database, tenant_id
 * may be any tenant. */
enum err_code user_respond_list(struct request *request, struct response *response,
                                struct pg_connection *connection, int64_t tenant_id,
                                struct err *err) MUST_USE;
/* Removes a user with sessions and tokens in the caller's transaction. Errors: ERR_NOT_FOUND,
 * ERR_CONFLICT (the tenant's last owner). */
enum err_code user_remove(struct request *request, struct pg_connection *connection,
                          int64_t tenant_id, int64_t id, struct err *err) MUST_USE;

/* Whether the text has the form of an e-mail address (something@something, no spaces or controls).
 * Errors: ERR_INVALID. */
enum err_code user_check_email(const char *email, struct err *err) MUST_USE;
/* Reads the field "role". Errors: ERR_INVALID, ERR_FORBIDDEN (it is higher than the caller's own).
 */
enum err_code user_read_role(const struct request *request, const struct json_body *body,
                             enum role *ret_role, struct err *err) MUST_USE;
/* Adds a user in the caller's transaction; password_hash may be NULL. Errors: ERR_CONFLICT (the
 * e-mail has an account already). */
enum err_code user_add(struct request *request, struct pg_connection *connection, int64_t tenant_id,
                       const char *email, const char *name, enum role role,
                       const char *password_hash, int64_t *ret_id, struct err *err) MUST_USE;

#endif

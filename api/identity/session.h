/*
 * session: signing in and out in a browser: POST, GET and DELETE /api/v1/session, POST
 * /api/v1/password.
 *
 * A session is a random secret in a cookie that scripts cannot read (AUTH_COOKIE); its SHA-256 is
 * stored. It ends after settings.session_lifetime_s, after 7 days without use, on signing out and
 * when the password is changed in another session. Signing in ends the session whose cookie was
 * sent. Guesses at passwords are limited (api/identity/password_attempt.h) and shown to the
 * account's owner (failed_sign_ins.h). An account that does not exist takes the same time and gives
 * the same response as a wrong password.
 */
#ifndef API_IDENTITY_SESSION_H
#define API_IDENTITY_SESSION_H

#include "api/http/request.h"

struct pg_connection;

enum err_code session_post(struct request *request, struct response *response, struct err *err);
enum err_code session_get(struct request *request, struct response *response, struct err *err);
enum err_code session_delete(struct request *request, struct response *response, struct err *err);
enum err_code session_post_password(struct request *request, struct response *response,
                                    struct err *err);

/* Starts a session of a user in the caller's transaction for that tenant; from then on the
 * request's principal is that user. Writes session.create to the audit log, with how ("password",
 * …) as its target. The caller commits and then responds with session_respond, to which it passes
 * *ret_secret. */
enum err_code session_start(struct request *request, struct pg_connection *connection,
                            int64_t tenant_id, int64_t user_id, const char *how,
                            const char **ret_secret, struct err *err) MUST_USE;
/* Responds with the request's principal as JSON. secret: of a session that session_start has just
 * begun; adds its cookie and a new device cookie. NULL: no session was begun. */
enum err_code session_respond(struct request *request, struct response *response,
                              struct pg_connection *connection, int status, const char *secret,
                              struct err *err) MUST_USE;

#endif

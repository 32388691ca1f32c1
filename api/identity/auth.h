/*
 * auth: who asks, and whether the route lets them.
 *
 * Workers call auth_identify and then auth_check_access before each handler (not for ROUTE_INLINE).
 * Credentials are `Authorization: Bearer pf_…` or the session cookie; a request with both counts as
 * the token's. Routes for agents take HTTP Basic with the token as the password, too, whatever the
 * user is called, and refuse an X-Scope-OrgID that is neither number nor name of the token's team.
 * Tokens are remembered for AUTH_CACHE_S, so that a busy sender costs no query each time; a token
 * revoked in this process is forgotten at once. Threads: any.
 */
#ifndef API_IDENTITY_AUTH_H
#define API_IDENTITY_AUTH_H

#include "api/http/principal.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

struct auth;
struct request;

enum { AUTH_CACHE_S = 5, AUTH_RECALL_S = 86400 };
#define AUTH_COOKIE "__Host-perfolio_session"

/* The part of struct server that remembers tokens; entry_count bounds it. */
struct auth *auth_create(uint32_t entry_count);
void auth_destroy(struct auth *auth); /* NULL is a no-op */
/* Forgets one token, or all tokens of a tenant, in this process. */
void auth_forget_token(struct auth *auth, int64_t token_id);
void auth_forget_tenant(struct auth *auth, int64_t tenant_id);

/* Does the request carry anything that auth_identify would look up? It may be wrong. */
bool auth_has_credentials(const struct request *request);

/*
 * Fills request->principal. A cookie whose session has ended counts as none. Handles:
 * ERR_UNAUTHENTICATED (a bearer token that is unknown, expired or revoked), ERR_DATABASE.
 */
enum err_code auth_identify(struct request *request, struct err *err) MUST_USE;

/*
 * For routes that have to work without the database, after auth_identify has failed for its sake:
 * fills request->principal where the request's bearer token was valid at its last look-up, within
 * AUTH_RECALL_S, and has not been revoked in this process or expired since.
 */
bool auth_recall(struct request *request);

/*
 * The rights of request->route: access, scopes, and for unsafe methods under a cookie the CSRF
 * token (X-CSRF-Token) and the origin (Origin, Sec-Fetch-Site). Handles: ERR_UNAUTHENTICATED
 * (credentials are needed), ERR_FORBIDDEN (they do not suffice, or the request comes from another
 * site).
 */
enum err_code auth_check_access(struct request *request, struct err *err) MUST_USE;
/* For what a route does only at times, beyond its own scopes. Handles: ERR_UNAUTHENTICATED,
 * ERR_FORBIDDEN (the message names the scope). */
enum err_code auth_check_scopes(const struct request *request, unsigned scopes,
                                struct err *err) MUST_USE;

/* What a role may do, as scopes. */
unsigned auth_role_scopes(enum role role);
/* "owner", "member", "viewer" and "none"; ROLE_NONE for other texts. */
const char *auth_role_name(enum role role);
enum role auth_role_parse(struct span name);

/* The CSRF token of a browser session: bound to its cookie, not stored. */
void auth_csrf_token(struct span session_secret, char ret_token[DIGEST_HEX_BYTES]);

#endif

/*
 * auth: authenticates the client of a request and checks its access to the route.
 *
 * Workers call auth_identify and then auth_check_access before each handler (not for ROUTE_INLINE).
 * Credentials are `Authorization: Bearer pf_…` or the session cookie; in a request with both, the
 * token counts. Routes for agents also accept HTTP Basic with the token as the password, whatever
 * the user name is. Routes that need scopes refuse a token with an X-Scope-OrgID that is neither
 * the number nor the name of its team. Tokens are cached for AUTH_CACHE_S, so that a frequent
 * client costs no query each time; a token revoked in this process is removed at once. Threads:
 * any.
 */
#ifndef API_IDENTITY_AUTH_H
#define API_IDENTITY_AUTH_H

#include "api/http/principal.h"
#include "lib/base/digest.h"
#include "lib/base/err_code.h"

struct auth;
struct request;

enum { AUTH_CACHE_S = 5, AUTH_RECALL_S = 86400 };
#define AUTH_COOKIE "__Host-perfolio_session"

/* The token cache of struct server, with entry_count entries. */
struct auth *auth_create(uint32_t entry_count);
void auth_destroy(struct auth *auth); /* NULL is a no-op */
/* Removes one token, or all tokens of a tenant, from the cache of this process. Call it after the
 * transaction that revoked them. */
void auth_forget_token(struct auth *auth, int64_t token_id);
void auth_forget_tenant(struct auth *auth, int64_t tenant_id);

/* Whether the request has credentials that auth_identify would look up. They may be wrong. */
bool auth_has_credentials(const struct request *request);

/* Fills request->principal. A cookie whose session has ended is ignored. Errors:
 * ERR_UNAUTHENTICATED (a bearer token that is unknown, expired or revoked), ERR_DATABASE. */
enum err_code auth_identify(struct request *request, struct err *err) MUST_USE;

/* For routes that have to work while the database does not respond. Call it after auth_identify has
 * failed with ERR_DATABASE. Fills request->principal and returns true if the request's bearer token
 * was valid at its last look-up, which is at most AUTH_RECALL_S ago, and has since neither expired
 * nor been revoked by this process. */
bool auth_recall(struct request *request);

/*
 * Checks the requirements of request->route: access, scopes, and for unsafe methods with a cookie
 * the CSRF token (X-CSRF-Token) and the origin (Origin, Sec-Fetch-Site). Errors:
 * ERR_UNAUTHENTICATED (credentials are needed), ERR_FORBIDDEN (they do not suffice, or the request
 * comes from another site).
 */
enum err_code auth_check_access(struct request *request, struct err *err) MUST_USE;
/* Checks further scopes, for an action that needs more than the scopes of its route. Errors:
 * ERR_UNAUTHENTICATED, ERR_FORBIDDEN (the message names the scope). */
enum err_code auth_check_scopes(const struct request *request, unsigned scopes,
                                struct err *err) MUST_USE;

/* The scopes of a role. */
unsigned auth_role_scopes(enum role role);
/* Returns "owner", "member", "viewer" or "none". */
const char *auth_role_name(enum role role);
/* The role with that name; ROLE_NONE for other texts. */
enum role auth_role_parse(struct span name);

/* The CSRF token of a browser session: derived from its cookie, not stored. */
void auth_csrf_token(struct span session_secret, char ret_token[DIGEST_HEX_BYTES]);

#endif

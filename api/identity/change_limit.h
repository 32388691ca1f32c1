/*
 * change_limit: the rate of changes by a team, by each of its tokens and users, and by an address
 * without credentials.
 *
 * A change is a request with an unsafe method: most write a row of the audit log, and all write to
 * the database. Changes that have rates of their own are not counted: requests of agents, uploads
 * (api/identity/quota.h), passwords and reports of abuse. Operators have no limit. The settings
 * tenant-changes-per-minute and anonymous-changes-per-minute are the rates, in memory of each
 * server (api/http/rate_limiter.h); the changes of CHANGE_LIMIT_BURST_MINUTES may come at once.
 *
 * A stolen token must not prevent the team from revoking it:
 *
 *   - one token or user has half of the team's rate;
 *   - a request that is refused (401, 403, 404, 410) is given back, since it has changed nothing;
 *   - deletions with ROUTE_SECURITY (of tokens, sessions, users, invitations, shares and comments)
 *     are not counted. Each succeeds once for something whose creation was limited, so they need no
 *     rate;
 *   - other requests of users with ROUTE_SECURITY (roles, the own password) count for the user
 *     only, CHANGE_LIMIT_SECURITY_MINUTE on average and CHANGE_LIMIT_SECURITY_BURST at once.
 *
 * Threads: any.
 */
#ifndef API_IDENTITY_CHANGE_LIMIT_H
#define API_IDENTITY_CHANGE_LIMIT_H

#include "lib/base/err_code.h"

struct request;

enum {
    CHANGE_LIMIT_BURST_MINUTES = 10,
    CHANGE_LIMIT_SECURITY_MINUTE = 10,
    CHANGE_LIMIT_SECURITY_BURST = 30
};

/* Called before the handler of any request, after auth_check_access. A request that is handled
 * again from the start counts once. Errors: ERR_RATE_LIMITED, with retry_after_s. */
enum err_code change_limit_take(struct request *request, struct err *err) MUST_USE;
/* Called with the handler's result. Gives back what change_limit_take took if the request was
 * refused before it could change anything. */
void change_limit_finish(struct request *request, enum err_code code);

#endif

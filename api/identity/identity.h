/*
 * identity: tenants, users, sessions, tokens, invitations: their routes, jobs and first rows.
 */
#ifndef API_IDENTITY_IDENTITY_H
#define API_IDENTITY_IDENTITY_H

#include "api/http/route.h"
#include "lib/base/digest.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct pg_connection;
struct server;

extern const struct route_table identity_routes;
extern const struct route_table
    identity_operator_routes; /* /api/v1/admin/… for tenants, users, tokens */

struct identity_bootstrap {
    char admin_token[DIGEST_TOKEN_BYTES]; /* tenant default, all scopes: is written to admin.token
                                             in the data folder */
    char login_code[DIGEST_SECRET_BYTES]; /* one use, 24 h: <public url>/login#code=<login_code> */
};

/*
 * Called after the migrations, at each start, on a connection of the schema's owner: ensures that
 * tenant default has an owner (admin@localhost) and issues a token and a one-time sign-in code.
 * known_token is the content of D/admin.token, or NULL. A valid known_token is returned unchanged;
 * otherwise a new token is made. Unused sign-in codes of earlier starts stop working.
 */
enum err_code identity_bootstrap(struct pg_connection *connection, const char *known_token,
                                 struct identity_bootstrap *ret_result, struct err *err) MUST_USE;

enum { IDENTITY_TRIM_S = 600 };

/* The state of the background work; zeroed at the start. */
struct identity_jobs {
    int64_t next_trim_ns; /* monotonic */
    /* All audit logs have been trimmed since the start, which is necessary because audit-max-rows
     * may be smaller than at the last start. Later only logs with new rows are trimmed. */
    bool has_trimmed;
};

/* Background work, every few seconds: deletes ended sessions, codes and invitations, tokens 30 days
 * after their expiry, old failed sign-ins and old audit rows, and every IDENTITY_TRIM_S the oldest
 * rows of the audit logs that have more than audit-max-rows. */
enum err_code identity_jobs_run(struct server *server, struct identity_jobs *jobs,
                                struct err *err) MUST_USE;

#endif

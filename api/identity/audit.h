/*
 * audit: the audit log: one row per change, with actor, action, target, time and address, written
 * in the change's transaction.
 *
 * Actions are "noun.verb" words, stable since people filter by them: share.create, token.revoke,
 * user.role. Targets are ids or names, never secrets. Rows are kept for AUDIT_KEEP_DAYS, but of a
 * tenant at most as many as the setting audit-max-rows, the newest (identity_jobs_run).
 */
#ifndef API_IDENTITY_AUDIT_H
#define API_IDENTITY_AUDIT_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct pg_connection;
struct request;

/* Anonymous clients can cause refused attempts, so the rows for these are limited: by a rate and a
 * burst for each tenant and for the server, and by a shorter retention. At worst 10 a minute for 30
 * days are 432,000 rows, about 100 MB. */
enum {
    AUDIT_KEEP_DAYS = 400,
    AUDIT_KEEP_REFUSED_DAYS = 30,
    AUDIT_REFUSED_TENANT_MINUTE = 2,
    AUDIT_REFUSED_TENANT_BURST = 60,
    AUDIT_REFUSED_SERVER_MINUTE = 10,
    AUDIT_REFUSED_SERVER_BURST = 600
};

/* Writes to the log of the principal's tenant. Inside a transaction the tenant is that of pg_begin,
 * and the row is sent with the next statement or the commit (pg_queue). */
enum err_code audit_record(struct pg_connection *connection, const struct request *request,
                           const char *action, const char *target, struct err *err) MUST_USE;
/* Writes to the log of the tenant tenant_id: an operator's action on it, or a sign-in, when the
 * request's principal is not the user yet. */
enum err_code audit_record_for(struct pg_connection *connection, const struct request *request,
                               int64_t tenant_id, const char *action, const char *target,
                               struct err *err) MUST_USE;

/*
 * For a change that is often repeated, such as an edit of a text: as audit_record_for, but this
 * server writes one row an hour for the same action, target and author; is_recorded is false for
 * the others. All clients without credentials are one author: each has the delete token. If the
 * transaction fails, call audit_undo_hourly, so that the next change is recorded.
 */
enum err_code audit_record_hourly(struct pg_connection *connection, const struct request *request,
                                  int64_t tenant_id, const char *action, const char *target,
                                  bool *ret_is_recorded, struct err *err) MUST_USE;
void audit_undo_hourly(const struct request *request, int64_t tenant_id, const char *action,
                       const char *target);

/*
 * Records a failed sign-in ("session.refuse") or a wrong password of a share ("share.refuse") in a
 * transaction of its own. target names the account or share, if it exists, never the text that was
 * typed. A row beyond the limits above, or one that cannot be written, is dropped: it
 * is counted (perfolio_audit_dropped_total) and logged, and the request continues.
 */
void audit_record_refused(const struct request *request, int64_t tenant_id, const char *action,
                          const char *target);

#endif

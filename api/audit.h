/*
 * audit: who did what, when, from where; one row per change, written in the change's transaction.
 *
 * Actions are "noun.verb" words, stable since people filter by them: share.create, token.revoke,
 * user.role. Targets are ids or names, never secrets. Rows are kept for AUDIT_KEEP_DAYS.
 */
#ifndef API_AUDIT_H
#define API_AUDIT_H

#include "lib/base/err.h"

#include <stdint.h>

struct pg_connection;
struct request;

enum { AUDIT_KEEP_DAYS = 400 };

/* Into the log of the principal's tenant. Inside a transaction the tenant is that of pg_begin, and
 * the row travels with the next statement or the commit (pg_queue). */
enum err_code audit_record(struct pg_connection *connection, const struct request *request,
                           const char *action, const char *target, struct err *err) MUST_USE;
/* Into another tenant's log: what an operator did to it, or who signed in. */
enum err_code audit_record_for(struct pg_connection *connection, const struct request *request,
                               int64_t tenant_id, const char *action, const char *target,
                               struct err *err) MUST_USE;

#endif

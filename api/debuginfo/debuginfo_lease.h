/*
 * debuginfo_lease: the lease of a job, a row of symbol_job: only one of the servers that share a
 * database holds it at a time. Each claim increments the fence of the row, and every statement for
 * the job names the fence of its claim: a server whose lease has ended changes nothing once another
 * server has claimed the job. Private to api/debuginfo/.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_LEASE_H
#define API_DEBUGINFO_DEBUGINFO_LEASE_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct pg_connection;
struct server;

struct debuginfo_lease {
    int64_t job_id;
    int64_t fence;
};

/* Renews the lease for duration_s from now. *ret_is_ours is false if another server has the job by
 * now. Errors: those of pg_query. */
enum err_code debuginfo_lease_renew(struct server *server, const struct debuginfo_lease *lease,
                                    int duration_s, bool *ret_is_ours, struct err *err) MUST_USE;

/* Deletes the job's row, in the caller's transaction if there is one. tenant_id: the tenant of the
 * connection, or PG_NO_TENANT. Errors: ERR_CONFLICT (another server has the job by now), the codes
 * of pg_query. */
enum err_code debuginfo_lease_end(struct pg_connection *connection, int64_t tenant_id,
                                  const struct debuginfo_lease *lease, struct arena *arena,
                                  struct err *err) MUST_USE;

#endif

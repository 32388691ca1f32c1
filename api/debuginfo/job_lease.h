/*
 * debuginfo_lease: a job (symbol_job) that one of all servers at the database has for a while.
 * Whose fence is no longer the row's comes too late and changes nothing. For api/debuginfo_*.c.
 */
#ifndef API_DEBUGINFO_JOB_LEASE_H
#define API_DEBUGINFO_JOB_LEASE_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct pg_connection;
struct server;

struct debuginfo_lease {
    int64_t job_id;
    int64_t fence;
};

/* For duration_s from now. *ret_is_ours is false when the job is another server's by now. Handles
 * what pg_query does. */
enum err_code debuginfo_lease_renew(struct server *server, const struct debuginfo_lease *lease,
                                    int duration_s, bool *ret_is_ours, struct err *err) MUST_USE;

/* The job's row goes, in the caller's transaction, if there is one, of the tenant or PG_NO_TENANT.
 * Handles: ERR_CONFLICT (the job is another server's by now), what pg_query does. */
enum err_code debuginfo_lease_end(struct pg_connection *connection, int64_t tenant_id,
                                  const struct debuginfo_lease *lease, struct arena *arena,
                                  struct err *err) MUST_USE;

#endif

/*
 * debuginfo_jobs: builds symbol tables of the debug files that teams sent, one after the other.
 *
 * Jobs are rows (symbol_job). One of the servers that share the database has a job, as long as it
 * renews its lease (debuginfo_lease.h). If it dies, another server takes the job after a minute.
 * Teams are served round robin. Only perfolio-symbolize reads the file, in its sandbox: however
 * that process ends, the file gets a table or a reason. A failure caused by the file is stored and
 * not retried until the builder has a newer version; a failure of the host is retried.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_JOBS_H
#define API_DEBUGINFO_DEBUGINFO_JOBS_H

#include "lib/base/err_code.h"

struct debuginfo_jobs;
struct server;

/* Starts two threads: one builds; the other one renews the lease, writes the noted needs and uses
 * (missing_symbols_note, public_tables_note_use) and deletes old rows. */
enum err_code debuginfo_jobs_start(struct server *server, struct debuginfo_jobs **ret_jobs,
                                   struct err *err) MUST_USE;
/* Aborts the running build, which another server continues. NULL is a no-op. */
void debuginfo_jobs_stop(struct debuginfo_jobs *jobs);
/* Call it after adding a job. NULL is a no-op. */
void debuginfo_jobs_wake(struct debuginfo_jobs *jobs);

#endif

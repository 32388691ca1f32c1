/*
 * debuginfo_build: one claimed job: builds the symbol table of a debug file and stores it. For
 * api/debuginfo/debuginfo_jobs.c.
 */
#ifndef API_DEBUGINFO_DEBUGINFO_BUILD_H
#define API_DEBUGINFO_DEBUGINFO_BUILD_H

#include "api/core/integrity.h"
#include "api/debuginfo/debuginfo_lease.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct wait_limit;
struct server;

struct debuginfo_job {
    struct debuginfo_lease lease; /* job_id 0: no job */
    int64_t tenant_id;
    const char *build_id;
    int64_t try_count;
    int64_t file_id; /* of debug_file */
    struct integrity_object object;
    const char *file;   /* its name, from the client */
    bool is_executable; /* kept for debuggers, whether it has names or not */
};

enum { DEBUGINFO_BUILD_MAX_TRIES = 5 };

/* Whether a failure is one of the host, such as a full disk or an S3 server that does not respond.
 * The job then waits, however often it is tried. */
bool debuginfo_build_can_wait(enum err_code code);

/*
 * Builds the table and ends the job: its row is deleted, and its file has a table (*ret_is_built)
 * or a reason. An executable of the build id is kept in either case. The files are those of the
 * job's team. Errors: ERR_CANCELLED (wait_limit has ended), ERR_CONFLICT (another server has the
 * job by now): nothing was changed. Any other error is caused by the host, and the job should be
 * retried.
 */
enum err_code debuginfo_build(struct server *server, const struct debuginfo_job *job,
                              const struct wait_limit *wait_limit, struct arena *arena,
                              bool *ret_is_built, struct err *err) MUST_USE;

#endif

/*
 * debuginfo_build: one claimed job: from a debug file to a symbol table in its place. For
 * api/debuginfo/job_queue.c.
 */
#ifndef API_DEBUGINFO_BUILD_JOB_H
#define API_DEBUGINFO_BUILD_JOB_H

#include "api/core/integrity.h"
#include "api/debuginfo/job_lease.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct wait_limit;
struct server;

struct debuginfo_job {
    struct debuginfo_lease lease; /* job_id 0: there is none */
    int64_t tenant_id;
    const char *build_id;
    int64_t try_count;
    int64_t file_id; /* of debug_file */
    struct integrity_object object;
    const char *file;
    bool is_executable; /* debuggers want it, whether it has names or not */
};

enum { DEBUGINFO_BUILD_MAX_TRIES = 5 };

/*
 * Builds, and ends the job: its row is gone, and its file has a table (*ret_is_built) or a reason.
 * An executable of the build id is kept in either case.
 * The files are those of the job's team. Handles: ERR_CANCELLED (the patience is over),
 * ERR_CONFLICT (the job belongs to somebody else by now): nothing was changed. Any other error is
 * the machine's: the job is to be tried again.
 */
enum err_code debuginfo_build(struct server *server, const struct debuginfo_job *job,
                              const struct wait_limit *wait_limit, struct arena *arena,
                              bool *ret_is_built, struct err *err) MUST_USE;

#endif

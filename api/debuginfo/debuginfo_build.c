#include "api/debuginfo/debuginfo_build.h"

#include "api/core/server.h"
#include "api/debuginfo/debuginfo_builder.h"
#include "api/debuginfo/debuginfo_table.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "lib/symbols/symbol_builder.h"

#include <string.h>

/* Per team. */
enum { MAX_FAILED_FILES = 1000 };

bool debuginfo_build_can_wait(enum err_code code)
{
    return code == ERR_BUSY || code == ERR_NETWORK || code == ERR_DATABASE || code == ERR_IO ||
           code == ERR_CANCELLED;
}

/* Whether the file caused the failure, so that a retry would fail in the same way. */
static bool is_of_the_file(const struct debuginfo_job *job, enum err_code code)
{
    static const enum err_code codes[] = {ERR_INVALID, ERR_UNSUPPORTED, ERR_TOO_LARGE,
                                          ERR_NOT_FOUND, ERR_QUOTA};
    if (code == ERR_CONFLICT || debuginfo_build_can_wait(code))
        return false;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (code == codes[i])
            return true;
    }
    return job->try_count >= DEBUGINFO_BUILD_MAX_TRIES;
}

/* Begins a transaction of the team that ends the job, unless another server has the job by now. */
static enum err_code begin_job_end(struct server *server, const struct debuginfo_job *job,
                                   struct pg_connection **ret_connection, struct arena *arena,
                                   struct err *err)
{
    enum err_code code = pg_take(server->database, ret_connection, err);
    if (code)
        return code;
    code = tenant_begin(*ret_connection, job->tenant_id, arena, err);
    if (code)
        return code;
    return debuginfo_lease_end(*ret_connection, job->tenant_id, &job->lease, arena, err);
}

static enum err_code store_table(struct server *server, const struct debuginfo_job *job,
                                 const struct debuginfo_table *table, bool *ret_is_stored,
                                 struct arena *arena, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = begin_job_end(server, job, &connection, arena, err);
    if (code)
        return code;
    code = pg_queue_values(connection, job->tenant_id,
                           "UPDATE debug_file SET state = 'built', reason = left($2, 600),"
                           " builder_version = $3::bigint::integer,"
                           " quality = $4::bigint::integer WHERE id = $1",
                           arena, err, PG_I64(job->file_id), PG_TEXT(table->problem),
                           PG_I64(SYMBOL_BUILDER_VERSION), PG_I64(table->facts.quality));
    if (code)
        return code;
    code = debuginfo_table_store(server, connection, table, arena, ret_is_stored, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

/* The job continues. If another server has it by now, that server's table is better and stays. */
static enum err_code store_first_names(struct server *server, const struct debuginfo_job *job,
                                       const struct debuginfo_table *table, bool *ret_is_stored,
                                       struct arena *arena, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, job->tenant_id, arena, err);
    if (code)
        return code;
    code = debuginfo_table_store(server, connection, table, arena, ret_is_stored, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

struct publisher {
    struct server *server;
    const struct debuginfo_job *job;
    struct arena *arena;
    bool is_first_names;
};

static enum err_code keep_table(void *context, const struct debuginfo_table *table,
                                bool *ret_is_stored, struct err *err)
{
    const struct publisher *publisher = context;
    return publisher->is_first_names ? store_first_names(publisher->server, publisher->job, table,
                                                         ret_is_stored, publisher->arena, err)
                                     : store_table(publisher->server, publisher->job, table,
                                                   ret_is_stored, publisher->arena, err);
}

static enum err_code publish_table(void *context, const struct debuginfo_built *built,
                                   struct err *err)
{
    struct publisher *publisher = context;
    const struct debuginfo_job *job = publisher->job;
    struct debuginfo_table table = {.tenant_id = job->tenant_id,
                                    .id = job->build_id,
                                    .source = "file",
                                    .file = job->file,
                                    .problem = built->problem,
                                    .bytes = built->bytes,
                                    .is_short_lived = built->is_first_names};
    publisher->is_first_names = built->is_first_names;
    enum err_code code =
        debuginfo_table_publish(publisher->server, &table, keep_table, publisher, err);
    symbol_tables_forget(publisher->server, job->tenant_id);
    return code;
}

static enum err_code build_tables(struct server *server, const struct debuginfo_job *job,
                                  const struct wait_limit *wait_limit, struct arena *arena,
                                  struct symbol_builder_report *ret_report, struct err *err)
{
    fd_auto input = -1;
    struct publisher publisher = {.server = server, .job = job, .arena = arena};
    /* No server is contacted here: that is done for the need (api/debuginfo/debuginfo_fetch.c). */
    const struct debuginfo_reader reader = {.publish = publish_table, .context = &publisher};
    enum err_code code = integrity_open_within(server, &job->object, wait_limit, &input, err);
    if (code)
        return code;
    code = integrity_verify_once(server, &job->object, input, err);
    if (code)
        return code;
    return debuginfo_builder_run(server, input, wait_limit, &reader, ret_report, err);
}

/* Clients that request the executable of a build id get it, even if it is stripped. */
static enum err_code keep_executable(struct server *server, const struct debuginfo_job *job,
                                     const char *reason, struct arena *arena, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = begin_job_end(server, job, &connection, arena, err);
    if (code)
        return code;
    code = pg_queue_values(connection, job->tenant_id,
                           "UPDATE debug_file SET state = 'built', reason = left($2, 600),"
                           " builder_version = $3::bigint::integer, quality = 0"
                           " WHERE id = $1",
                           arena, err, PG_I64(job->file_id), PG_TEXT(reason),
                           PG_I64(SYMBOL_BUILDER_VERSION));
    if (code)
        return code;
    return pg_commit(connection, err);
}

/* Deletes the oldest failed files of the team. Their rows count in no quota. */
static enum err_code limit_failed_files(struct pg_connection *connection, int64_t tenant_id,
                                        struct arena *arena, struct err *err)
{
    return pg_queue_values(connection, tenant_id,
                           "DELETE FROM debug_file WHERE id IN (SELECT id FROM debug_file"
                           " WHERE tenant_id = $1 AND state = 'failed'"
                           " ORDER BY id DESC OFFSET $2)",
                           arena, err, PG_I64(tenant_id), PG_I64(MAX_FAILED_FILES));
}

/* Stores the reason and deletes the bytes, which are of no use. A file that was damaged or lost in
 * the store gets version 0, so that the same file is accepted when it is uploaded again. */
static enum err_code fail_job(struct server *server, const struct debuginfo_job *job,
                              const char *reason, bool is_damaged, struct arena *arena,
                              struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = begin_job_end(server, job, &connection, arena, err);
    if (code)
        return code;
    code = pg_query_values(connection, job->tenant_id,
                           "SELECT bytes FROM debug_file WHERE id = $1 FOR UPDATE", arena, &rows,
                           err, PG_I64(job->file_id));
    if (code)
        return code;
    if (pg_row_count(rows))
        code = quota_give_back(connection, job->tenant_id, pg_get_i64(rows, 0, 0), arena, err);
    if (code)
        return code;
    code = pg_queue_values(connection, job->tenant_id,
                           "UPDATE debug_file SET state = 'failed', reason = left($2, 600),"
                           " builder_version = $3::bigint::integer, object_key = '', bytes = 0"
                           " WHERE id = $1",
                           arena, err, PG_I64(job->file_id), PG_TEXT(reason),
                           PG_I64(is_damaged ? 0 : SYMBOL_BUILDER_VERSION));
    if (code)
        return code;
    code = limit_failed_files(connection, job->tenant_id, arena, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

enum err_code debuginfo_build(struct server *server, const struct debuginfo_job *job,
                              const struct wait_limit *wait_limit, struct arena *arena,
                              bool *ret_is_built, struct err *err)
{
    *ret_is_built = false;
    /* The job was claimed too often and never ended: the server died each time. */
    if (job->try_count > DEBUGINFO_BUILD_MAX_TRIES)
        return fail_job(server, job, "the server stopped each time while it built the symbol table",
                        false, arena, err);
    struct symbol_builder_report report = {0};
    enum err_code code = build_tables(server, job, wait_limit, arena, &report, err);
    *ret_is_built = !code;
    if (!code || !is_of_the_file(job, code))
        return code;
    const bool is_damaged = code == ERR_CORRUPT || code == ERR_LOST;
    const char *reason = is_damaged ? "the stored file is damaged or lost: upload it again"
                         : code == ERR_QUOTA
                             ? "the team's storage quota has no space for its symbol table"
                             : err_public_text(err);
    reason = arena_strdup(arena, reason);
    if (job->is_executable && code != ERR_QUOTA && !is_damaged &&
        strcmp(report.id, job->build_id) == 0)
        return keep_executable(server, job, reason, arena, err);
    return fail_job(server, job, reason, is_damaged, arena, err);
}

#include "api/debuginfo_build.h"

#include "api/debuginfo_table.h"
#include "api/quota.h"
#include "api/server.h"
#include "api/tenant.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "lib/symbols/symbol_builder.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Of a table: ten times that of a 230 MB debug file. It is in memory while it is looked at. */
#define TABLE_MAX_BYTES (UINT64_C(512) << 20)

/* Is it the file's fault, so that it would come to the same another time? */
static bool is_of_the_file(const struct debuginfo_job *job, enum err_code code)
{
    static const enum err_code codes[] = {ERR_INVALID, ERR_UNSUPPORTED, ERR_TOO_LARGE,
                                          ERR_NOT_FOUND, ERR_QUOTA};
    if (code == ERR_CANCELLED || code == ERR_CONFLICT)
        return false;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (code == codes[i])
            return true;
    }
    return job->try_count >= DEBUGINFO_BUILD_MAX_TRIES;
}

/* The job ends in the caller's transaction, unless it is somebody else's by now. */
static enum err_code end_job(struct pg_connection *connection, const struct debuginfo_job *job,
                             struct arena *arena, struct err *err)
{
    struct pg_result *rows;
    enum err_code code = pg_query_values(connection, job->tenant_id,
                                         "DELETE FROM symbol_job WHERE id = $1 AND fence = $2",
                                         arena, &rows, err, PG_I64(job->id), PG_I64(job->fence));
    if (!code && pg_affected(rows) != 1)
        code = err_set(err, ERR_CONFLICT, "the job went to another server");
    return code;
}

static enum err_code begin(struct server *server, const struct debuginfo_job *job,
                           struct pg_connection **ret_connection, struct arena *arena,
                           struct err *err)
{
    enum err_code code = pg_take(server->database, ret_connection, err);
    if (!code)
        code = tenant_begin(*ret_connection, job->tenant_id, arena, err);
    return code ? code : end_job(*ret_connection, job, arena, err);
}

static enum err_code store(struct server *server, const struct debuginfo_job *job,
                           const struct debuginfo_table *table, bool *ret_is_stored,
                           struct arena *arena, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = begin(server, job, &connection, arena, err);
    if (!code)
        code = pg_queue_values(connection, job->tenant_id,
                               "UPDATE debug_file SET state = 'built', reason = left($2, 600),"
                               " builder_version = $3::bigint::integer WHERE id = $1",
                               arena, err, PG_I64(job->file_id), PG_TEXT(table->problem),
                               PG_I64(SYMBOL_BUILDER_VERSION));
    if (!code)
        code = debuginfo_table_store(server, connection, table, arena, ret_is_stored, err);
    return code ? code : pg_commit(connection, err);
}

static enum err_code publish(struct server *server, const struct debuginfo_job *job,
                             struct span bytes, const char *problem, struct arena *arena,
                             struct err *err)
{
    bool is_stored = false;
    struct debuginfo_table table = {.tenant_id = job->tenant_id,
                                    .id = job->build_id,
                                    .source = "file",
                                    .file = job->file,
                                    .problem = problem,
                                    .bytes = bytes};
    enum err_code code = debuginfo_table_read(&table, err);
    if (!code)
        code = debuginfo_table_put(server, &table, err);
    if (code)
        return code;
    code = store(server, job, &table, &is_stored, arena, err);
    /* After ERR_DATABASE it is not known whether a row names it: the sweep finds out. */
    if (code != ERR_DATABASE && !(is_stored && !code))
        debuginfo_discard(server, table.object_key);
    symbol_tables_forget(server, job->tenant_id);
    return code;
}

static enum err_code publish_fd(struct server *server, const struct debuginfo_job *job, int fd,
                                const char *problem, struct arena *arena, struct err *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "looking at a new symbol table");
    if (status.st_size == 0)
        return err_set(err, ERR_INTERNAL, "the builder of symbol tables wrote nothing");
    const size_t size = (size_t)status.st_size;
    void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return err_set_errno(err, ERR_IO, "mapping a new symbol table");
    enum err_code code = publish(server, job, span_of(memory, size), problem, arena, err);
    munmap(memory, size);
    return code;
}

static enum err_code build(struct server *server, const struct debuginfo_job *job,
                           const struct patience *patience, struct arena *arena, struct err *err)
{
    fd_auto input = -1;
    uint64_t size;
    struct symbol_builder_report report;
    enum err_code code =
        object_open_within(server->objects, job->object_key, patience, &input, &size, err);
    if (code)
        return code;
    fd_auto output = memfd_create("symbol table", MFD_CLOEXEC);
    if (output < 0)
        return err_set_errno(err, ERR_IO, "memfd_create");
    const struct symbol_builder_options options = {.input_fd = input,
                                                   .output_fd = output,
                                                   .alternate_fd = -1,
                                                   .output_bytes = TABLE_MAX_BYTES,
                                                   .patience = patience};
    code = symbol_builder_run(&options, &report, err);
    return code ? code : publish_fd(server, job, output, report.problem, arena, err);
}

/* The reason stays; the bytes, of no use to anybody, go. */
static enum err_code fail(struct server *server, const struct debuginfo_job *job,
                          const char *reason, struct arena *arena, struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = begin(server, job, &connection, arena, err);
    if (!code)
        code = pg_query_values(connection, job->tenant_id,
                               "SELECT bytes FROM debug_file WHERE id = $1 FOR UPDATE", arena,
                               &rows, err, PG_I64(job->file_id));
    if (!code && pg_row_count(rows))
        code = quota_give_back(connection, job->tenant_id, pg_get_i64(rows, 0, 0), arena, err);
    if (!code)
        code = pg_queue_values(connection, job->tenant_id,
                               "UPDATE debug_file SET state = 'failed', reason = left($2, 600),"
                               " builder_version = $3::bigint::integer, object_key = '', bytes = 0"
                               " WHERE id = $1",
                               arena, err, PG_I64(job->file_id), PG_TEXT(reason),
                               PG_I64(SYMBOL_BUILDER_VERSION));
    return code ? code : pg_commit(connection, err);
}

enum err_code debuginfo_build(struct server *server, const struct debuginfo_job *job,
                              const struct patience *patience, struct arena *arena,
                              bool *ret_is_built, struct err *err)
{
    *ret_is_built = false;
    /* It was claimed so often without an end: whoever had it died. */
    if (job->try_count > DEBUGINFO_BUILD_MAX_TRIES)
        return fail(server, job, "the server stopped each time while it built the symbol table",
                    arena, err);
    enum err_code code = build(server, job, patience, arena, err);
    *ret_is_built = !code;
    if (!code || !is_of_the_file(job, code))
        return code;
    const char *reason =
        code == ERR_QUOTA ? "the team's storage has no room for its symbol table" : err->message;
    return fail(server, job, arena_strdup(arena, reason), arena, err);
}

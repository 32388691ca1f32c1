#include "api/query/export.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/query/export_space.h"
#include "api/query/query.h"
#include "api/query/query_fields.h"
#include "api/query/query_parts.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "store/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* An export allocates this much at a time, a smaller one only its own size. */
#define STEP_BYTES ((uint64_t)16 << 20)

struct spool {
    struct export_file file;
    uint64_t bytes;
};

/* Near a limit, where another step does not fit, the file grows by what is written. */
static enum err_code extend(struct export_file *file, uint64_t end, struct err *err)
{
    if (end >= STEP_BYTES && export_space_extend(file, end + STEP_BYTES, err) == ERR_NONE)
        return ERR_NONE;
    *err = (struct err){0};
    return export_space_extend(file, end, err);
}

static enum err_code append_bytes(void *context, struct span bytes, struct err *err)
{
    struct spool *spool = context;
    const uint64_t end = spool->bytes + bytes.size;
    if (end > EXPORT_MAX_BYTES)
        return err_set(
            err, ERR_TOO_LARGE,
            "the export has more than %" PRIu64
            " bytes: select fewer series or a shorter time, and export the rest separately",
            EXPORT_MAX_BYTES);
    enum err_code code = ERR_NONE;
    if (end > spool->file.bytes)
        code = extend(&spool->file, end, err);
    if (!code && os_write_all(spool->file.fd, bytes.data, bytes.size) != 0)
        code = err_set_errno(err, ERR_IO, "writing an export");
    spool->bytes = end;
    return code;
}

static enum err_code begin_attempt(void *context, struct err *err)
{
    struct spool *spool = context;
    if (lseek(spool->file.fd, 0, SEEK_SET) != 0)
        return err_set_errno(err, ERR_IO, "the beginning of the file of an export");
    spool->bytes = 0;
    return export_space_trim(&spool->file, 0, err);
}

static void end_spool(void *spool)
{
    export_space_end(&((struct spool *)spool)->file);
}

/* The space is given back with the request: after the client has read the response, or has left. */
static enum err_code open_spool(const struct request *request, struct spool **ret_spool,
                                struct err *err)
{
    const char *folder =
        arena_printf(request->arena, "%s/objects", request->server->settings->data_dir);
    const int fd = os_openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "creating a file in the objects folder");
    struct spool *spool = arena_new(request->arena, struct spool, 1);
    spool->file = (struct export_file){.space = request->server->query->exports,
                                       .tenant_id = request->principal.tenant_id,
                                       .fd = fd};
    export_space_begin(&spool->file);
    arena_on_destroy(request->arena, end_spool, spool);
    *ret_spool = spool;
    return ERR_NONE;
}

static enum err_code read_request(struct request *request, struct store_query *query,
                                  struct err *err)
{
    static const char *const known[] = {"query", "start", "end", "format", NULL};
    static const char *const repeatable[] = {"label", "span_selector", "trace_id_selector", NULL};
    struct span format = SPAN_LITERAL("parquet");
    enum err_code code = request_check_parameters(request, known, repeatable, err);
    if (code)
        return code;
    request_query(request, "format", &format);
    if (!span_equal_text(format, "parquet"))
        return err_set(err, ERR_INVALID, "format must be parquet, the only supported one");
    code = query_read(request, &query_parameters, NULL, query, err);
    return code ? code : query_read_labels(request, query, err);
}

static enum err_code get_export(struct request *request, struct response *response, struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct store_query query;
    struct store_statistics statistics;
    struct spool *spool = NULL;
    enum err_code code = read_request(request, &query, err);
    if (code)
        return code;
    code = open_spool(request, &spool, err);
    if (code)
        return code;
    const struct store_export_sink sink = {
        .begin = begin_attempt, .append = append_bytes, .context = spool};
    code = store_export(request->server->store, request->arena, &query, &sink, &statistics, err);
    if (!code)
        code = export_space_trim(&spool->file, spool->bytes, err);
    if (code) {
        os_close(spool->file.fd);
        return code;
    }
    query_fields_add_statistics(request, response, &statistics, begin_ns);
    response_add(request, response, "cache-control", "private, no-cache");
    response_add(request, response, "content-disposition",
                 "attachment; filename=\"profiles.parquet\"");
    response_file(response, 200, "application/vnd.apache.parquet", spool->file.fd, spool->bytes);
    return ERR_NONE;
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/export", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_export},
};

const struct route_table export_routes = {routes, sizeof(routes) / sizeof(*routes)};

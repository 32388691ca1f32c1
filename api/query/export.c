#include "api/query/export.h"

#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/query/query.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "store/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Free space that exports leave on the disk for durable data. */
#define DISK_RESERVE_BYTES ((uint64_t)1 << 30)

struct spool {
    int fd;
    uint64_t bytes;
    uint64_t looked_at_bytes; /* the size when free space was last checked */
};

static enum err_code check_disk(struct spool *spool, struct err *err)
{
    enum { STEP_BYTES = 16 << 20 };
    struct statvfs disk;
    if (spool->looked_at_bytes && spool->bytes < spool->looked_at_bytes + STEP_BYTES)
        return ERR_NONE;
    spool->looked_at_bytes = spool->bytes ? spool->bytes : 1;
    if (fstatvfs(spool->fd, &disk) != 0)
        return err_set_errno(err, ERR_IO, "reading the free space of the objects folder");
    if ((uint64_t)disk.f_bavail * disk.f_frsize < DISK_RESERVE_BYTES)
        return err_set(err, ERR_BUSY,
                       "the server's disk has no space for an export now: select fewer series or a "
                       "shorter time, or try again later");
    return ERR_NONE;
}

static enum err_code append_bytes(void *context, struct span bytes, struct err *err)
{
    struct spool *spool = context;
    if (spool->bytes + bytes.size > EXPORT_MAX_BYTES)
        return err_set(
            err, ERR_TOO_LARGE,
            "the export has more than %" PRIu64
            " bytes: select fewer series or a shorter time, and export the rest separately",
            EXPORT_MAX_BYTES);
    enum err_code code = check_disk(spool, err);
    if (!code && os_write_all(spool->fd, bytes.data, bytes.size) != 0)
        code = err_set_errno(err, ERR_IO, "writing an export");
    spool->bytes += bytes.size;
    return code;
}

static enum err_code begin_attempt(void *context, struct err *err)
{
    struct spool *spool = context;
    if (ftruncate(spool->fd, 0) != 0 || lseek(spool->fd, 0, SEEK_SET) != 0)
        return err_set_errno(err, ERR_IO, "truncating the file of an export");
    spool->bytes = spool->looked_at_bytes = 0;
    return ERR_NONE;
}

static enum err_code open_spool(const struct request *request, struct spool *ret_spool,
                                struct err *err)
{
    const char *folder =
        arena_printf(request->arena, "%s/objects", request->server->settings->data_dir);
    const int fd = os_openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "creating a file in the objects folder");
    *ret_spool = (struct spool){.fd = fd};
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
    code = query_read(request, &query_names, NULL, query, err);
    return code ? code : query_read_labels(request, query, err);
}

static enum err_code get_export(struct request *request, struct response *response, struct err *err)
{
    const int64_t begin_ns = clock_monotonic_ns();
    struct store_query query;
    struct store_statistics statistics;
    struct spool spool;
    enum err_code code = read_request(request, &query, err);
    if (code)
        return code;
    code = open_spool(request, &spool, err);
    if (code)
        return code;
    const struct store_export_sink sink = {
        .begin = begin_attempt, .append = append_bytes, .context = &spool};
    code = store_export(request->server->store, request->arena, &query, &sink, &statistics, err);
    if (code) {
        os_close(spool.fd);
        return code;
    }
    query_add_statistics(request, response, &statistics, begin_ns);
    response_add(request, response, "cache-control", "private, no-cache");
    response_add(request, response, "content-disposition",
                 "attachment; filename=\"profiles.parquet\"");
    response_file(response, 200, "application/vnd.apache.parquet", spool.fd, spool.bytes);
    return ERR_NONE;
}

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/export", ACCESS_SCOPES, SCOPE_READ, 0, 0, get_export},
};

const struct route_table export_routes = {routes, sizeof(routes) / sizeof(*routes)};

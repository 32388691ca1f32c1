#include "api/debuginfo/debuginfo_routes.h"

#include "api/core/integrity.h"
#include "api/core/server.h"
#include "api/debuginfo/build_id.h"
#include "api/debuginfo/debuginfo_table.h"
#include "api/debuginfo/debuginfo_upload.h"
#include "api/debuginfo/symbol_status.h"
#include "api/http/byte_range.h"
#include "api/http/concurrency_limit.h"
#include "api/http/json_response.h"
#include "api/http/request.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LIST_DEFAULT = 100,
    LIST_MAX = 1000,
    FILES_MAX = 100, /* listed for one build id */
};

/* ---- listing ---- */

#define TABLE_COLUMNS                                                                              \
    "build_id, quality, functions, bytes, source, file, problem, broken_units,"                    \
    " builder_version, rfc3339(created_at), quality_rank, object_is_damaged(object_key)"
#define TABLE_SELECT "SELECT " TABLE_COLUMNS " FROM symbol_table WHERE tenant_id = $1"

/* The first N of both lists contain everything that the first N of the merged list need. */
static const char list_select[] =
    "SELECT " TABLE_COLUMNS ", t.has_table, coalesce(files, 0), coalesce(file_bytes, 0) FROM"
    " (SELECT *, true AS has_table FROM symbol_table WHERE tenant_id = $1 AND build_id > $2"
    "   ORDER BY build_id LIMIT $3) AS t"
    " FULL JOIN (SELECT build_id, count(*) AS files, sum(bytes)::bigint AS file_bytes"
    "   FROM debug_file WHERE tenant_id = $1 AND build_id > $2"
    "   GROUP BY build_id ORDER BY build_id LIMIT $3) AS f USING (build_id)"
    " ORDER BY build_id LIMIT $3";

static void write_table(struct json_response *json, const struct pg_result *rows, int row)
{
    json_response_cell_text(json, "source", rows, row, 4);
    debuginfo_table_write_quality(json, (uint32_t)pg_get_i64(rows, row, 1));
    json_response_cell_i64(json, "quality_rank", rows, row, 10);
    json_response_cell_i64(json, "functions", rows, row, 2);
    json_response_cell_i64(json, "bytes", rows, row, 3);
    json_response_cell_text(json, "file", rows, row, 5);
    json_response_cell_text(json, "problem", rows, row, 6);
    json_response_cell_i64(json, "broken_units", rows, row, 7);
    json_response_cell_i64(json, "builder_version", rows, row, 8);
    json_response_cell_text(json, "created_at", rows, row, 9);
    json_response_bool(json, "is_damaged", pg_get_bool(rows, row, 11));
}

static void write_binary(struct json_response *json, const struct pg_result *rows, int row)
{
    json_response_open(json, NULL, '{');
    json_response_cell_text(json, "build_id", rows, row, 0);
    if (pg_is_null(rows, row, 12)) {
        json_response_null(json, "table");
    } else {
        json_response_open(json, "table", '{');
        write_table(json, rows, row);
        json_response_close(json, '}');
    }
    json_response_cell_i64(json, "files", rows, row, 13);
    json_response_cell_i64(json, "file_bytes", rows, row, 14);
    json_response_close(json, '}');
}

static enum err_code list_binaries(struct request *request, struct response *response,
                                   struct err *err)
{
    static const char *const known[] = {"limit", "after", NULL};
    struct span after = SPAN_LITERAL("");
    struct pg_result *rows;
    pg_auto connection = NULL;
    int64_t limit = LIST_DEFAULT;
    enum err_code code = request_check_query(request, known, err);
    if (!code)
        code = request_query_i64(request, "limit", 1, LIST_MAX, LIST_DEFAULT, &limit, err);
    request_query(request, "after", &after);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, request->principal.tenant_id, list_select, request->arena,
                           &rows, err, PG_I64(request->principal.tenant_id), PG_SPAN(after),
                           PG_I64(limit + 1));
    if (code)
        return code;
    const int count = pg_row_count(rows);
    const bool has_more = count > limit;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "binaries", '[');
    for (int row = 0; row < count - has_more; row++)
        write_binary(&json, rows, row);
    json_response_close(&json, ']');
    json_response_text(&json, "next", has_more ? pg_get_text(rows, count - 2, 0) : NULL);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

static void write_files(struct json_response *json, const struct pg_result *rows)
{
    json_response_open(json, "files", '[');
    for (int row = 0; row < pg_row_count(rows); row++) {
        json_response_open(json, NULL, '{');
        json_response_cell_text(json, "kind", rows, row, 0);
        json_response_cell_text(json, "state", rows, row, 1);
        json_response_cell_text(json, "reason", rows, row, 2);
        json_response_cell_i64(json, "bytes", rows, row, 3);
        json_response_cell_text(json, "sha256", rows, row, 4);
        json_response_cell_text(json, "file", rows, row, 5);
        json_response_cell_text(json, "created_at", rows, row, 6);
        json_response_bool(json, "is_damaged", pg_get_bool(rows, row, 7));
        json_response_close(json, '}');
    }
    json_response_close(json, ']');
}

static const char *state_name(enum symbol_status_state state)
{
    return state == SYMBOL_STATUS_READY     ? "ready"
           : state == SYMBOL_STATUS_PENDING ? "pending"
                                            : "missing";
}

/* Files first: if one is built, its table exists by then. */
static enum err_code read_own(struct request *request, const char *id, struct pg_result **ret_table,
                              struct pg_result **ret_files, struct err *err)
{
    const int64_t tenant_id = request->principal.tenant_id;
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "SELECT kind, state, reason, bytes, encode(sha256, 'hex'), file,"
                           " rfc3339(created_at), object_is_damaged(object_key) FROM"
                           " (SELECT * FROM debug_file WHERE tenant_id = $1 AND build_id = $2"
                           "  ORDER BY id DESC LIMIT $3) AS newest ORDER BY id",
                           request->arena, ret_files, err, PG_I64(tenant_id), PG_TEXT(id),
                           PG_I64(FILES_MAX));
    if (code)
        return code;
    return pg_query_values(connection, tenant_id, TABLE_SELECT " AND build_id = $2", request->arena,
                           ret_table, err, PG_I64(tenant_id), PG_TEXT(id));
}

/* A table that exists is reported as ready. The first call may report a table that another server
 * has stored as pending, because this process has made responses without it. It also makes later
 * responses use the table, so the second call reports it as ready. */
static enum err_code read_state(struct request *request, const char *id,
                                const struct symbol_status **ret_state, struct err *err)
{
    const struct build_id_binary binary = {.build_id = span_text(id)};
    const int64_t tenant_id = request->principal.tenant_id;
    enum err_code code =
        symbol_status_get(request->server, tenant_id, &binary, 1, request->arena, ret_state, err);
    if (!code && (*ret_state)->state == SYMBOL_STATUS_PENDING)
        code = symbol_status_get(request->server, tenant_id, &binary, 1, request->arena, ret_state,
                                 err);
    return code;
}

/* 200 for any build id: an unknown one only has a state. */
static enum err_code show_binary(struct request *request, struct response *response,
                                 struct err *err)
{
    char id[BUILD_ID_BYTES];
    struct pg_result *table, *files;
    const struct symbol_status *states;
    enum err_code code = build_id_of_path(request, id, err);
    if (code)
        return code;
    code = read_own(request, id, &table, &files, err);
    if (code)
        return code;
    code = read_state(request, id, &states, err);
    if (code)
        return code;
    char retry[CLOCK_TEXT_BYTES];
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_text(&json, "build_id", id);
    json_response_text(&json, "state", state_name(states->state));
    json_response_text(&json, "reason",
                       states->state == SYMBOL_STATUS_MISSING ? states->reason : "");
    json_response_text(&json, "next_retry",
                       states->next_retry_ms
                           ? clock_format(states->next_retry_ms * CLOCK_NS_PER_MS, retry)
                           : NULL);
    if (pg_row_count(table)) {
        json_response_open(&json, "table", '{');
        write_table(&json, table, 0);
        json_response_close(&json, '}');
    } else {
        json_response_null(&json, "table");
    }
    write_files(&json, files);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, 200, err);
}

/* ---- deleting ---- */

static enum err_code delete_rows(struct request *request, struct pg_connection *connection,
                                 const char *id, struct err *err)
{
    const int64_t tenant_id = request->principal.tenant_id;
    struct pg_result *rows;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "WITH tables AS (DELETE FROM symbol_table WHERE tenant_id = $1 AND build_id = $2"
        "  RETURNING bytes),"
        " files AS (DELETE FROM debug_file WHERE tenant_id = $1 AND build_id = $2"
        "  RETURNING bytes),"
        " gone AS (SELECT bytes FROM tables UNION ALL SELECT bytes FROM files)"
        " SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone",
        request->arena, &rows, err, PG_I64(tenant_id), PG_TEXT(id));
    if (code)
        return code;
    if (pg_get_i64(rows, 0, 0) == 0)
        return err_set(err, ERR_NOT_FOUND, "your team has no debug information of %s", id);
    return quota_give_back(connection, tenant_id, pg_get_i64(rows, 0, 1), request->arena, err);
}

static enum err_code delete_binary(struct request *request, struct response *response,
                                   struct err *err)
{
    char id[BUILD_ID_BYTES];
    pg_auto connection = NULL;
    enum err_code code = build_id_of_path(request, id, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, request->principal.tenant_id, request->arena, err);
    if (code)
        return code;
    code = delete_rows(request, connection, id, err);
    if (code)
        return code;
    code = audit_record(connection, request, "debuginfo.delete", id, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    symbol_tables_forget(request->server, request->principal.tenant_id);
    return json_response_nothing(request, response);
}

/* ---- debuggers ---- */

struct served {
    struct integrity_object object;
    const char *etag;
};

/* A request for a debug file also gets an executable that has debug information of its own. */
static enum err_code find_file(struct request *request, const char *id, const char *kind,
                               struct served *ret_file, struct err *err)
{
    struct pg_result *rows;
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, request->principal.tenant_id,
        "SELECT object_key, encode(sha256, 'hex'), bytes, sha256 FROM debug_file"
        " WHERE tenant_id = $1 AND build_id = $2 AND state = 'built'"
        " AND (kind = $3 OR ($3 = 'debuginfo' AND quality & $4::bigint::integer <> 0))"
        " ORDER BY kind = $3 DESC, bytes DESC, id DESC LIMIT 1",
        request->arena, &rows, err, PG_I64(request->principal.tenant_id), PG_TEXT(id),
        PG_TEXT(kind), PG_I64(SYMBOL_HAS_DWARF));
    if (code)
        return code;
    if (pg_row_count(rows) == 0)
        return err_set(err, ERR_NOT_FOUND, "your team has uploaded no %s of %s", kind, id);
    *ret_file =
        (struct served){.object = {.kind = INTEGRITY_DEBUG_FILE,
                                   .tenant_id = request->principal.tenant_id,
                                   .row = arena_strdup(request->arena, id),
                                   .key = pg_get_text(rows, 0, 0),
                                   .bytes = (uint64_t)pg_get_i64(rows, 0, 2),
                                   .sha256 = pg_get_bytes(rows, 0, 3)},
                        .etag = arena_printf(request->arena, "\"%s\"", pg_get_text(rows, 0, 1))};
    return ERR_NONE;
}

/* The whole object is read from the bucket before the first of its parts is sent: a quarter of the
 * threads for downloads may do that for a team. */
static enum err_code take_slot(struct request *request, struct err *err)
{
    const char *key = request->concurrency_slot.key;
    if (!key)
        key = arena_printf(request->arena, "debug files of %" PRId64, request->principal.tenant_id);
    return request_take_slot(request, request->server->limits->downloads, key,
                             "several debug files of the team are being read, and others wait; try "
                             "again in a few seconds",
                             err);
}

/* A whole file is compared while it is sent. A part of one cannot be: the whole object is read and
 * compared before the first part is sent, and the result is kept for the parts that follow. Digests
 * of single pieces would need a column that grows with the file, for a read that happens once. */
static enum err_code check_response(struct request *request, struct response *response,
                                    const struct integrity_object *object, struct err *err)
{
    if (response->body_kind != RESPONSE_FILE)
        return ERR_NONE;
    if (response->file_fd < 0)
        response_stored(request, response, object);
    if (response->status == 206)
        return integrity_verify_once(request->server, object, response->file_fd, err);
    response->file_check = integrity_stream_create(request->server, request->arena, object);
    return ERR_NONE;
}

/* If the store makes copies, *ret_fd is -1, and the response reads the object piece by piece. */
static enum err_code open_file(struct request *request, const struct integrity_object *object,
                               int *ret_fd, struct err *err)
{
    struct server *server = request->server;
    if (!object_store_makes_copies(server->objects))
        return integrity_open(server, object, ret_fd, err);
    buf_auto byte;
    buf_init(&byte, 1);
    *ret_fd = -1; /* finds a lost object */
    return integrity_read_range(server, object, 0, object->bytes > 0, &byte, err);
}

static enum err_code serve_file(struct request *request, const char *kind,
                                struct response *response, struct err *err)
{
    char id[BUILD_ID_BYTES];
    struct served file = {0};
    int fd;
    enum err_code code = build_id_of_path(request, id, err);
    if (code)
        return code;
    code = find_file(request, id, kind, &file, err);
    if (code)
        return code;
    if (response_is_cached(request, response, file.etag, "private, max-age=86400"))
        return ERR_NONE;
    code = take_slot(request, err);
    if (code)
        return code;
    code = open_file(request, &file.object, &fd, err);
    if (code)
        return code;
    response_add(request, response, "x-debuginfod-size",
                 arena_printf(request->arena, "%" PRIu64, file.object.bytes));
    byte_range_respond(request, response, "application/octet-stream", file.etag, fd,
                       file.object.bytes);
    return check_response(request, response, &file.object, err);
}

static enum err_code serve_debuginfo(struct request *request, struct response *response,
                                     struct err *err)
{
    return serve_file(request, "debuginfo", response, err);
}

static enum err_code serve_executable(struct request *request, struct response *response,
                                      struct err *err)
{
    return serve_file(request, "executable", response, err);
}

#define DEBUGINFO "/api/v1/debuginfo"

static const struct route routes[] = {
    {HTTP_GET, DEBUGINFO, ACCESS_SCOPES, SCOPE_DEBUGINFO, 0, 0, list_binaries},
    {HTTP_POST, DEBUGINFO "/{id}/table", ACCESS_SCOPES, SCOPE_DEBUGINFO, ROUTE_STORES,
     HTTP_MAX_BODY_BYTES, debuginfo_upload_table},
    {HTTP_POST, DEBUGINFO "/{id}/debuginfo", ACCESS_SCOPES, SCOPE_DEBUGINFO, ROUTE_STORES,
     HTTP_MAX_BODY_BYTES, debuginfo_upload_debuginfo},
    {HTTP_POST, DEBUGINFO "/{id}/executable", ACCESS_SCOPES, SCOPE_DEBUGINFO, ROUTE_STORES,
     HTTP_MAX_BODY_BYTES, debuginfo_upload_executable},
    {HTTP_GET, DEBUGINFO "/{id}", ACCESS_SCOPES, SCOPE_DEBUGINFO, 0, 0, show_binary},
    {HTTP_DELETE, DEBUGINFO "/{id}", ACCESS_SCOPES, SCOPE_DEBUGINFO, 0, 0, delete_binary},
    {HTTP_GET, "/buildid/{id}/debuginfo", ACCESS_SCOPES, SCOPE_DEBUGINFO, ROUTE_DOWNLOAD, 0,
     serve_debuginfo},
    {HTTP_GET, "/buildid/{id}/executable", ACCESS_SCOPES, SCOPE_DEBUGINFO, ROUTE_DOWNLOAD, 0,
     serve_executable},
};

const struct route_table debuginfo_routes = {routes, sizeof(routes) / sizeof(*routes)};

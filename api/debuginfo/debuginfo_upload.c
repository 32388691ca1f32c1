#include "api/debuginfo/debuginfo_upload.h"

#include "api/core/server.h"
#include "api/debuginfo/build_id.h"
#include "api/debuginfo/debuginfo_jobs.h"
#include "api/debuginfo/debuginfo_parts.h"
#include "api/debuginfo/debuginfo_table.h"
#include "api/http/json_response.h"
#include "api/identity/audit.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "api/upload/upload.h"
#include "api/upload/upload_assemble.h"
#include "api/upload/upload_slot.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mapped_file.h"
#include "lib/base/os.h"
#include "lib/input/share_text.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "lib/symbols/symbol_builder.h"
#include "lib/symbols/symbol_pack.h"

#include <inttypes.h>
#include <stdio.h>

struct incoming {
    char id[BUILD_ID_BYTES];
    const char *kind; /* "table", "debuginfo", "executable" */
    const char *file;
    bool has_upload; /* its bytes were charged when it was announced */
    struct upload upload;
    int64_t bytes;
    char object_key[DEBUGINFO_KEY_BYTES];
    uint8_t sha256[DIGEST_BYTES];
};

static enum err_code read_file_name(struct request *request, struct incoming *incoming,
                                    struct err *err)
{
    struct span file = SPAN_LITERAL("");
    request_query(request, "file", &file);
    if (file.size == 0 && incoming->has_upload)
        file = span_text(incoming->upload.filename);
    enum err_code code = share_text_check("file", file, BUILD_ID_FILE_CHARACTERS, true, err);
    incoming->file = arena_strndup(request->arena, file.data, file.size);
    return code;
}

static enum err_code read_incoming(struct request *request, const char *kind,
                                   struct incoming *incoming, struct err *err)
{
    static const char *const known[] = {"upload", "file", NULL};
    struct span upload;
    *incoming = (struct incoming){.kind = kind, .bytes = (int64_t)request->body.size};
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = build_id_of_path(request, incoming->id, err);
    if (code)
        return code;
    incoming->has_upload = request_query(request, "upload", &upload);
    if (incoming->has_upload == (request->body.size > 0))
        return err_set(err, ERR_INVALID,
                       "send the bytes as body, or in parts and name them with ?upload=");
    if (incoming->has_upload)
        code = upload_find_mine(request, upload, &incoming->upload, err);
    if (code)
        return code;
    if (incoming->has_upload && *incoming->upload.share_id)
        code = err_set(err, ERR_CONFLICT, "this upload became a share");
    if (code)
        return code;
    if (incoming->has_upload)
        incoming->bytes = incoming->upload.size_bytes;
    code = read_file_name(request, incoming, err);
    if (code)
        return code;
    return incoming->has_upload ? quota_take_completion(request, err)
                                : quota_take_upload(request, (uint64_t)incoming->bytes, err);
}

/* Makes the bytes an object, which has no row yet. */
static enum err_code put_object(struct request *request, struct incoming *incoming,
                                const char *folder, struct err *err)
{
    char random[DIGEST_ID_BYTES];
    digest_random_id(random);
    snprintf(incoming->object_key, sizeof(incoming->object_key), "%s/%s", folder, random);
    if (incoming->has_upload)
        return upload_assemble_join(request, &incoming->upload, incoming->object_key,
                                    incoming->sha256, err);
    digest_sha256(request->body, incoming->sha256);
    return object_put(request->server->objects, incoming->object_key, request->body, err);
}

/* The upload may have failed before its object was written. */
static void discard_incoming(struct request *request, const struct incoming *incoming)
{
    if (incoming->object_key[0])
        debuginfo_table_discard(request->server, incoming->object_key);
    if (incoming->has_upload)
        upload_assemble_release(request, &incoming->upload);
}

/* Excludes other requests that end the upload in parts. */
static enum err_code lock_upload(struct request *request, struct pg_connection *connection,
                                 const struct incoming *incoming, struct err *err)
{
    struct pg_result *rows;
    if (!incoming->has_upload)
        return ERR_NONE;
    const enum err_code code =
        pg_query_values(connection, request->principal.tenant_id,
                        "SELECT FROM upload WHERE id = $1 AND share_id IS NULL FOR UPDATE",
                        request->arena, &rows, err, PG_TEXT(incoming->upload.id));
    if (code || pg_row_count(rows) == 1)
        return code;
    return err_set(err, ERR_CONFLICT, "the upload was completed or deleted meanwhile");
}

/* Ends the upload in parts. result_bytes: charged in place of its bytes. The parts, which wait in
 * object_trash, count for the quota with the rest. */
static enum err_code delete_upload(struct request *request, struct pg_connection *connection,
                                   const struct incoming *incoming, int64_t result_bytes,
                                   struct err *err)
{
    static const char *const statements[] = {
        "DELETE FROM upload_part WHERE upload_id = $1",
        "DELETE FROM upload WHERE id = $1",
    };
    const int64_t tenant_id = request->principal.tenant_id;
    const char *id = incoming->upload.id;
    if (!incoming->has_upload)
        return ERR_NONE;
    enum err_code code = pg_queue_values(
        connection, tenant_id, "UPDATE upload SET result_bytes = $2::bigint WHERE id = $1",
        request->arena, err, PG_TEXT(id), PG_I64(result_bytes));
    for (size_t i = 0; !code && i < sizeof(statements) / sizeof(*statements); i++)
        code =
            pg_queue_values(connection, tenant_id, statements[i], request->arena, err, PG_TEXT(id));
    return code;
}

/* Ends an upload in parts that is not needed. */
static enum err_code drop_upload(struct request *request, struct pg_connection *connection,
                                 const struct incoming *incoming, struct err *err)
{
    if (!incoming->has_upload)
        return ERR_NONE;
    const enum err_code code = quota_give_back(connection, request->principal.tenant_id,
                                               incoming->bytes, request->arena, err);
    return code ? code : delete_upload(request, connection, incoming, 0, err);
}

static enum err_code begin_transaction(struct request *request,
                                       struct pg_connection **ret_connection, struct err *err)
{
    enum err_code code = pg_take(request->server->database, ret_connection, err);
    return code ? code
                : tenant_begin(*ret_connection, request->principal.tenant_id, request->arena, err);
}

/* ---- tables ---- */

static enum err_code commit_table(struct request *request, struct pg_connection *connection,
                                  const struct incoming *incoming,
                                  const struct debuginfo_table *table, bool *ret_is_stored,
                                  struct err *err)
{
    enum err_code code = lock_upload(request, connection, incoming, err);
    if (code)
        return code;
    code = debuginfo_table_store(request->server, connection, table, request->arena, ret_is_stored,
                                 err);
    if (code)
        return code;
    code = *ret_is_stored ? delete_upload(request, connection, incoming, table->stored_bytes, err)
                          : drop_upload(request, connection, incoming, err);
    if (!code && *ret_is_stored)
        code = audit_record(connection, request, "debuginfo.add", incoming->id, err);
    return code ? code : pg_commit(connection, err);
}

static enum err_code store_table(struct request *request, const struct incoming *incoming,
                                 const struct debuginfo_table *table, bool *ret_is_stored,
                                 struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = begin_transaction(request, &connection, err);
    if (!code)
        code = commit_table(request, connection, incoming, table, ret_is_stored, err);
    return quota_refuse(request, request->principal.tenant_id, code, err);
}

static enum err_code respond_table(struct request *request, const struct incoming *incoming,
                                   const struct debuginfo_table *table, bool is_stored,
                                   struct response *response, struct err *err)
{
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_text(&json, "build_id", incoming->id);
    json_response_bool(&json, "is_stored", is_stored); /* false: the existing one is not worse */
    debuginfo_table_write_quality(&json, table->facts.quality);
    json_response_i64(&json, "functions", table->functions);
    json_response_i64(&json, "bytes", table->stored_bytes);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, is_stored ? 201 : 200, err);
}

/* Joined parts are an object already, which is kept if it is packed; everything else is written as
 * a new object. */
static enum err_code put_table(struct request *request, struct incoming *incoming,
                               struct debuginfo_table *table, struct err *err)
{
    if (incoming->has_upload && symbol_pack_is(table->bytes)) {
        memcpy(table->sha256, incoming->sha256, DIGEST_BYTES);
        memcpy(table->object_key, incoming->object_key, sizeof(table->object_key));
        table->stored_bytes = (int64_t)table->bytes.size;
        return ERR_NONE;
    }
    const enum err_code code = debuginfo_table_put(request->server, table, err);
    if (code)
        return code;
    if (incoming->has_upload)
        debuginfo_table_discard(request->server, incoming->object_key);
    memcpy(incoming->object_key, table->object_key, sizeof(incoming->object_key));
    return ERR_NONE;
}

static enum err_code take_table(struct request *request, struct incoming *incoming,
                                struct span bytes, struct response *response, struct err *err)
{
    bool is_stored = false;
    struct debuginfo_table table = {.tenant_id = request->principal.tenant_id,
                                    .id = incoming->id,
                                    .source = "table",
                                    .file = incoming->file,
                                    .problem = "",
                                    .bytes = bytes,
                                    .charged_bytes = incoming->has_upload ? incoming->bytes : 0};
    enum err_code code = debuginfo_table_read(request->server, &table, err);
    if (!code)
        code = put_table(request, incoming, &table, err);
    if (!code)
        code = store_table(request, incoming, &table, &is_stored, err);
    if (code && code != ERR_DATABASE)
        discard_incoming(request, incoming);
    if (code)
        return code;
    if (!is_stored)
        debuginfo_table_discard(request->server, incoming->object_key);
    symbol_tables_forget(request->server, table.tenant_id);
    return respond_table(request, incoming, &table, is_stored, response, err);
}

static enum err_code take_parts(struct request *request, struct incoming *incoming,
                                struct response *response, struct err *err)
{
    fd_auto fd = -1;
    uint64_t size = 0;
    enum err_code code = upload_assemble_open(request, incoming->object_key, &fd, &size, err);
    mapped_file_auto file = {0};
    if (!code && size == 0)
        code = err_set(err, ERR_CORRUPT, "the joined parts are empty");
    if (!code)
        code = mapped_file_open(fd, (size_t)size, &file, err);
    if (code) {
        discard_incoming(request, incoming);
        return code;
    }
    code = take_table(request, incoming, file.bytes, response, err);
    /* If the mapped file could not be read, that is why the table seemed to be invalid. */
    return code && mapped_file_check(&file, err) ? err->code : code;
}

enum err_code debuginfo_upload_table(struct request *request, struct response *response,
                                     struct err *err)
{
    struct incoming incoming;
    enum err_code code = upload_slot_take(request, err);
    if (code)
        return code;
    code = read_incoming(request, "table", &incoming, err);
    if (code || !incoming.has_upload)
        return code ? code : take_table(request, &incoming, request->body, response, err);
    code = put_object(request, &incoming, "symbols", err);
    return code ? code : take_parts(request, &incoming, response, err);
}

/* ---- debug files and executables ---- */

/* If the same bytes were sent before, their result is known and these are not needed, unless the
 * stored ones are damaged or lost. Then these replace them, and *ret_replaced_bytes is the charge
 * of the old ones; otherwise it is 0. */
static enum err_code find_same(struct request *request, struct pg_connection *connection,
                               const struct incoming *incoming, bool *ret_is_known,
                               const char **ret_state, int64_t *ret_replaced_bytes, struct err *err)
{
    struct pg_result *rows;
    enum err_code code = pg_query_values(
        connection, request->principal.tenant_id,
        "SELECT state, reason, builder_version, object_is_damaged(object_key), bytes"
        " FROM debug_file WHERE tenant_id = $1"
        " AND build_id = $2 AND kind = $3 AND sha256 = $4 FOR UPDATE",
        request->arena, &rows, err, PG_I64(request->principal.tenant_id), PG_TEXT(incoming->id),
        PG_TEXT(incoming->kind), PG_BYTES(span_of(incoming->sha256, DIGEST_BYTES)));
    *ret_is_known = false;
    *ret_replaced_bytes = 0;
    if (code || pg_row_count(rows) == 0)
        return code;
    const bool has_failed = span_equal_text(span_text(pg_get_text(rows, 0, 0)), "failed");
    const bool is_damaged = pg_get_bool(rows, 0, 3);
    *ret_state = pg_get_text(rows, 0, 0);
    *ret_is_known = !has_failed && !is_damaged;
    if (is_damaged)
        *ret_replaced_bytes = pg_get_i64(rows, 0, 4);
    else if (has_failed && pg_get_i64(rows, 0, 2) >= SYMBOL_BUILDER_VERSION)
        return err_set(err, ERR_INVALID, "this file was tried before: %s", pg_get_text(rows, 0, 1));
    return ERR_NONE;
}

static enum err_code insert_file(struct request *request, struct pg_connection *connection,
                                 const struct incoming *incoming, struct err *err)
{
    struct pg_result *rows;
    const int64_t tenant_id = request->principal.tenant_id;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "INSERT INTO debug_file (tenant_id, build_id, kind, object_key, bytes, sha256, file)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant_id, build_id, kind, sha256)"
        " DO UPDATE SET object_key = excluded.object_key, bytes = excluded.bytes,"
        " file = excluded.file, state = 'waiting', reason = '', created_at = now() RETURNING id",
        request->arena, &rows, err, PG_I64(tenant_id), PG_TEXT(incoming->id),
        PG_TEXT(incoming->kind), PG_TEXT(incoming->object_key), PG_I64(incoming->bytes),
        PG_BYTES(span_of(incoming->sha256, DIGEST_BYTES)), PG_TEXT(incoming->file));
    if (code)
        return code;
    const int64_t file_id = pg_get_i64(rows, 0, 0);
    return pg_queue_values(connection, tenant_id,
                           "INSERT INTO symbol_job (tenant_id, kind, key, build_id, debug_file_id)"
                           " VALUES ($1, 'build', $2, $3, $4) ON CONFLICT (key) DO NOTHING",
                           request->arena, err, PG_I64(tenant_id),
                           PG_TEXT(arena_printf(request->arena, "build/%" PRId64, file_id)),
                           PG_TEXT(incoming->id), PG_I64(file_id));
}

/* An upload in parts was charged when it was announced. Comes after insert_file, which moves the
 * object that is replaced to object_trash. */
static enum err_code charge_file(struct request *request, struct pg_connection *connection,
                                 const struct incoming *incoming, int64_t replaced_bytes,
                                 struct err *err)
{
    const int64_t tenant_id = request->principal.tenant_id;
    if (!incoming->has_upload)
        return quota_replace(request->server, connection, tenant_id, replaced_bytes,
                             incoming->bytes, request->arena, err);
    const enum err_code code =
        quota_give_back(connection, tenant_id, replaced_bytes, request->arena, err);
    return code ? code : delete_upload(request, connection, incoming, incoming->bytes, err);
}

static enum err_code commit_file(struct request *request, struct pg_connection *connection,
                                 const struct incoming *incoming, bool *ret_is_known,
                                 const char **ret_state, struct err *err)
{
    int64_t replaced_bytes;
    enum err_code code =
        find_same(request, connection, incoming, ret_is_known, ret_state, &replaced_bytes, err);
    if (code)
        return code;
    code = lock_upload(request, connection, incoming, err);
    if (code)
        return code;
    if (*ret_is_known) {
        code = drop_upload(request, connection, incoming, err);
        return code ? code : pg_commit(connection, err);
    }
    code = insert_file(request, connection, incoming, err);
    if (code)
        return code;
    code = charge_file(request, connection, incoming, replaced_bytes, err);
    if (code)
        return code;
    code = audit_record(connection, request, "debuginfo.add", incoming->id, err);
    return code ? code : pg_commit(connection, err);
}

static enum err_code store_file(struct request *request, const struct incoming *incoming,
                                bool *ret_is_known, const char **ret_state, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = begin_transaction(request, &connection, err);
    if (!code)
        code = commit_file(request, connection, incoming, ret_is_known, ret_state, err);
    return quota_refuse(request, request->principal.tenant_id, code, err);
}

static enum err_code post_file(struct request *request, const char *kind, struct response *response,
                               struct err *err)
{
    struct incoming incoming;
    bool is_known = false;
    const char *state = "waiting";
    char hex[DIGEST_HEX_BYTES];
    /* Joining the parts of an upload reads and hashes up to a gigabyte twice. */
    enum err_code code = upload_slot_take(request, err);
    if (code)
        return code;
    code = read_incoming(request, kind, &incoming, err);
    if (code)
        return code;
    code = put_object(request, &incoming, "debuginfo", err);
    if (code)
        return code;
    code = store_file(request, &incoming, &is_known, &state, err);
    if (code && code != ERR_DATABASE)
        discard_incoming(request, &incoming);
    if (code)
        return code;
    if (is_known)
        debuginfo_table_discard(request->server, incoming.object_key);
    else
        debuginfo_jobs_wake(request->server->debuginfo->jobs);
    digest_hex(span_of(incoming.sha256, DIGEST_BYTES), hex);
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_text(&json, "build_id", incoming.id);
    json_response_text(&json, "kind", kind);
    json_response_text(&json, "state", is_known ? state : "waiting");
    json_response_text(&json, "sha256", hex);
    json_response_i64(&json, "bytes", incoming.bytes);
    json_response_close(&json, '}');
    return json_response_send(&json, request, response, is_known ? 200 : 202, err);
}

enum err_code debuginfo_upload_debuginfo(struct request *request, struct response *response,
                                         struct err *err)
{
    return post_file(request, "debuginfo", response, err);
}

enum err_code debuginfo_upload_executable(struct request *request, struct response *response,
                                          struct err *err)
{
    return post_file(request, "executable", response, err);
}

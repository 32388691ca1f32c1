#include "api/upload/upload.h"

#include "api/core/integrity.h"
#include "api/core/server.h"
#include "api/core/server_key.h"
#include "api/core/settings.h"
#include "api/http/json_body.h"
#include "api/identity/idempotency.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "api/upload/upload_assemble.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/input/share_text.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

/* The key of a part's object: "part/<upload>.<number>.<random>"; a part that is put again with
 * other bytes is a new object. */
enum { PART_KEY_BYTES = 96, MAX_RENEWAL_MS = 60 * 1000 };

static int64_t part_size(const struct upload *upload, int64_t part)
{
    bool is_last = part == upload->part_count - 1;
    return is_last ? upload->size_bytes - part * upload->part_bytes : upload->part_bytes;
}

/* When an abandoned upload expires. An announcement reserves quota, which all anonymous clients
 * share, so theirs expire sooner. */
static int64_t lifetime_ms(const struct settings *settings, int64_t tenant_id)
{
    return 1000 * (tenant_id == TENANT_ANONYMOUS ? settings_anonymous_upload_lifetime_s(settings)
                                                 : settings->upload_lifetime_s);
}

static int64_t next_expiry_ms(const struct settings *settings, int64_t tenant_id)
{
    return clock_wall_ns() / CLOCK_NS_PER_MS + lifetime_ms(settings, tenant_id);
}

static enum err_code insert_upload(struct request *request, const struct upload *upload,
                                   const char *upload_token, struct span sha256,
                                   const struct idempotency *idempotency, struct err *err)
{
    uint8_t token_hash[DIGEST_BYTES];
    digest_sha256(span_text(upload_token), token_hash);
    const struct principal *principal = &request->principal;
    const char *subscriber = "";
    pg_auto connection = NULL;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, principal->tenant_id, request->arena, err);
    if (code)
        return code;
    code = idempotency_record(connection, request, idempotency, err);
    if (code)
        return code;
    if (principal->kind == PRINCIPAL_ANONYMOUS)
        code = quota_check_announcement(request, connection, upload->size_bytes, &subscriber, err);
    if (code)
        return code;
    code = pg_queue_values(
        connection, principal->tenant_id,
        "INSERT INTO upload (id, tenant_id, user_id, token_id, token_hash, size_bytes,"
        " part_bytes, part_count, filename, sha256, expires_at, address) VALUES ($1::text, "
        "$2::bigint,"
        " $3::bigint, $4::bigint, $5::bytea, $6::bigint, $7::bigint, $8::bigint, $9::text,"
        " $10::bytea, 'epoch'::timestamptz + $11::bigint * interval '1 ms', $12::text)",
        request->arena, err, PG_TEXT(upload->id), PG_I64(principal->tenant_id),
        principal->user_id ? PG_I64(principal->user_id) : PG_NULL,
        principal->token_id ? PG_I64(principal->token_id) : PG_NULL,
        PG_BYTES(span_of(token_hash, DIGEST_BYTES)), PG_I64(upload->size_bytes),
        PG_I64(upload->part_bytes), PG_I64(upload->part_count), PG_TEXT(upload->filename),
        sha256.size ? PG_BYTES(sha256) : PG_NULL, PG_I64(upload->expires_ms), PG_TEXT(subscriber));
    if (code)
        return code;
    code = quota_charge(request, connection, upload->size_bytes, err);
    if (code)
        return code;
    return quota_refuse(request, principal->tenant_id, pg_commit(connection, err), err);
}

const char *upload_base_name(struct arena *arena, struct span path)
{
    size_t start = path.size;
    while (start > 0 && path.data[start - 1] != '/' && path.data[start - 1] != '\\')
        start--;
    return arena_strndup(arena, path.data + start, path.size - start);
}

static enum err_code read_announcement(struct request *request, struct upload *upload,
                                       struct span *ret_sha256, struct err *err)
{
    static const char *const known[] = {"size", "filename", "sha256", NULL};
    struct json_body *body;
    const char *filename, *hex;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_i64(body, "size", 1, INT64_C(1) << 40, 0, &upload->size_bytes, err);
    if (code)
        return code;
    if (upload->size_bytes == 0)
        return err_set(err, ERR_INVALID, "size is missing: the number of bytes of the upload");
    code =
        json_body_text(body, "filename", 0, (size_t)4 * UPLOAD_FILENAME_CHARACTERS, &filename, err);
    if (code)
        return code;
    if (filename)
        code = share_text_check("filename", span_text(filename), UPLOAD_FILENAME_CHARACTERS, true,
                                err);
    if (code)
        return code;
    code = json_body_text(body, "sha256", 0, DIGEST_HEX_BYTES, &hex, err);
    if (code)
        return code;
    upload->filename = upload_base_name(request->arena, span_text(filename ? filename : ""));
    *ret_sha256 = SPAN_LITERAL("");
    if (!hex)
        return ERR_NONE;
    uint8_t *hash = arena_new(request->arena, uint8_t, DIGEST_BYTES);
    if (!digest_parse_hex(span_text(hex), hash, DIGEST_BYTES))
        return err_set(err, ERR_INVALID, "sha256 must be 64 hexadecimal digits");
    *ret_sha256 = span_of(hash, DIGEST_BYTES);
    return ERR_NONE;
}

static enum err_code find_upload(struct request *request, struct span id, struct upload *ret_upload,
                                 struct err *err)
{
    if (!digest_is_id(id))
        return err_set(err, ERR_NOT_FOUND,
                       "there is no such upload: an id has 22 letters and digits");
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT, "SELECT * FROM upload_find($1::text)",
                           request->arena, &result, err, PG_SPAN(id));
    if (code)
        return code;
    if (pg_row_count(result) == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no upload %.*s, or it has expired: start another", SPAN_PRINT(id));
    *ret_upload = (struct upload){
        .id = arena_strndup(request->arena, id.data, id.size),
        .tenant_id = pg_get_i64(result, 0, 0),
        .token_hash = pg_get_bytes(result, 0, 3),
        .size_bytes = pg_get_i64(result, 0, 4),
        .part_bytes = pg_get_i64(result, 0, 5),
        .part_count = pg_get_i64(result, 0, 6),
        .filename = pg_get_text(result, 0, 7),
        .sha256 = pg_get_bytes(result, 0, 8),
        .share_id = pg_get_text(result, 0, 9),
        .expires_ms = pg_get_i64(result, 0, 10),
    };
    return ERR_NONE;
}

/* The upload's id and token are random, or derived from the request's idempotency key. */
static enum err_code make_upload(struct request *request, struct upload *upload, struct span sha256,
                                 struct idempotency *idempotency, struct err *err)
{
    if (!idempotency->is_wanted) {
        digest_random_id(idempotency->id);
        digest_random_secret(idempotency->secret);
    }
    upload->id = idempotency->id;
    upload->part_count = (upload->size_bytes + UPLOAD_PART_BYTES - 1) / UPLOAD_PART_BYTES;
    upload->expires_ms = next_expiry_ms(request->server->settings, request->principal.tenant_id);
    return insert_upload(request, upload, idempotency->secret, sha256, idempotency, err);
}

static void respond_begun(struct request *request, const struct upload *upload, const char *token,
                          struct response *response)
{
    char expires[CLOCK_TEXT_BYTES];
    char *json = arena_printf(request->arena,
                              "{\"id\":\"%s\",\"part_bytes\":%" PRId64 ",\"part_count\":%" PRId64
                              ",\"expires_at\":\"%s\",\"upload_token\":\"%s\"}",
                              upload->id, upload->part_bytes, upload->part_count,
                              clock_format(upload->expires_ms * CLOCK_NS_PER_MS, expires), token);
    response_add(request, response, "location",
                 arena_printf(request->arena, "%s/%s", request->route->pattern, upload->id));
    response_add(request, response, "cache-control", "no-store");
    response_bytes(response, 201, "application/json", span_text(json));
}

static enum err_code begin_upload(struct request *request, struct response *response,
                                  struct err *err)
{
    struct upload upload = {.part_bytes = UPLOAD_PART_BYTES};
    struct span sha256;
    struct idempotency idempotency;
    enum err_code code = read_announcement(request, &upload, &sha256, err);
    if (code)
        return code;
    code = idempotency_find(request, &idempotency, err);
    if (code)
        return code;
    if (!idempotency.is_known)
        code = quota_take_upload(request, (uint64_t)upload.size_bytes, err);
    if (code)
        return code;
    if (!idempotency.is_known)
        code = idempotency_find_winner(
            request, make_upload(request, &upload, sha256, &idempotency, err), &idempotency, err);
    if (code)
        return code;
    if (idempotency.is_known)
        code = find_upload(request, span_text(idempotency.id), &upload, err);
    if (code)
        return code;
    respond_begun(request, &upload, idempotency.secret, response);
    return ERR_NONE;
}

/* The members of its tenant may continue it, and the holder of its token. */
static enum err_code check_rights(struct request *request, const struct upload *upload,
                                  struct err *err)
{
    const struct principal *principal = &request->principal;
    if (principal->kind != PRINCIPAL_ANONYMOUS && principal->tenant_id == upload->tenant_id &&
        principal_has(principal, request->route->scopes))
        return ERR_NONE;
    uint8_t hash[DIGEST_BYTES];
    struct span token = request_field(request, "x-perfolio-upload-token");
    digest_sha256(token, hash);
    if (principal->tenant_id == upload->tenant_id && digest_is_secret(token) &&
        digest_equal(span_of(hash, sizeof(hash)), upload->token_hash))
        return ERR_NONE;
    return err_set(err, ERR_NOT_FOUND,
                   "there is no upload %s for you: send its token in X-Perfolio-Upload-Token",
                   upload->id);
}

enum err_code upload_find_mine(struct request *request, struct span id, struct upload *ret_upload,
                               struct err *err)
{
    enum err_code code = find_upload(request, id, ret_upload, err);
    return code ? code : check_rights(request, ret_upload, err);
}

static enum err_code find_mine(struct request *request, struct upload *ret_upload, struct err *err)
{
    return upload_find_mine(request, request->path_params[0], ret_upload, err);
}

enum part_state { PART_ABSENT, PART_DIFFERS, PART_SAME };

/* Compares the body with the stored part. A part that the scrub found damaged or lost differs. */
static enum err_code find_part(struct request *request, const struct upload *upload, int64_t part,
                               struct span sha256, enum part_state *ret_state, struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, upload->tenant_id,
                           "SELECT sha256 = $3::bytea AND NOT object_is_damaged(object_key)"
                           " FROM upload_part WHERE upload_id = $1::text AND part = $2::bigint",
                           request->arena, &rows, err, PG_TEXT(upload->id), PG_I64(part),
                           PG_BYTES(sha256));
    if (code)
        return code;
    *ret_state = pg_row_count(rows) == 0   ? PART_ABSENT
                 : pg_get_bool(rows, 0, 0) ? PART_SAME
                                           : PART_DIFFERS;
    return ERR_NONE;
}

static enum err_code check_open(int row_count, struct err *err)
{
    return row_count == 1 ? ERR_NONE
                          : err_set(err, ERR_CONFLICT,
                                    "the upload is being completed, or was completed or deleted "
                                    "meanwhile: request its state");
}

/* The upload $1, if it may receive parts. */
#define IS_OPEN                                                                                    \
    "id = $1::text AND share_id IS NULL AND expires_at > now()"                                    \
    " AND (completing_until IS NULL OR completing_until <= now())"
/* $2: milliseconds */
#define EXPIRY "'epoch'::timestamptz + $2::bigint * interval '1 ms'"
/* Starts the lifetime of an upload again, if the upload may still receive parts. */
#define RENEW_UPLOAD "UPDATE upload SET expires_at = " EXPIRY " WHERE " IS_OPEN " RETURNING id"

/* A part can be repeated without a limit, so not every repetition writes the row: only one after
 * 1/60 of the lifetime, at most a minute. */
static int64_t renewal_ms(const struct settings *settings, int64_t tenant_id)
{
    const int64_t interval_ms = lifetime_ms(settings, tenant_id) / 60;
    return interval_ms < MAX_RENEWAL_MS ? interval_ms : MAX_RENEWAL_MS;
}

static enum err_code renew_upload(struct request *request, const struct upload *upload,
                                  struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    const struct settings *settings = request->server->settings;
    code =
        pg_query_values(connection, upload->tenant_id,
                        "WITH renewed AS (UPDATE upload SET expires_at = " EXPIRY " WHERE " IS_OPEN
                        " AND expires_at < " EXPIRY " - $3::bigint * interval '1 ms')"
                        " SELECT id FROM upload WHERE " IS_OPEN,
                        request->arena, &rows, err, PG_TEXT(upload->id),
                        PG_I64(next_expiry_ms(settings, upload->tenant_id)),
                        PG_I64(renewal_ms(settings, upload->tenant_id)));
    return code ? code : check_open(pg_row_count(rows), err);
}

/* The replaced object counts for the quota until it is deleted. */
static enum err_code charge_replaced(struct request *request, struct pg_connection *connection,
                                     const struct upload *upload, struct err *err)
{
    const int64_t bytes = (int64_t)request->body.size;
    return quota_replace(request->server, connection, upload->tenant_id, bytes, bytes,
                         request->arena, err);
}

static enum err_code insert_part(struct request *request, const struct upload *upload, int64_t part,
                                 const char *key, struct span sha256, struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, upload->tenant_id, request->arena, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, upload->tenant_id,
        "WITH renewed AS (" RENEW_UPLOAD ")"
        " INSERT INTO upload_part (upload_id, tenant_id, part, size_bytes, object_key, sha256)"
        " SELECT id, $3::bigint, $4::bigint, $5::bigint, $6::text, $7::bytea FROM renewed"
        " ON CONFLICT (upload_id, part) DO UPDATE SET size_bytes = excluded.size_bytes,"
        " object_key = excluded.object_key, sha256 = excluded.sha256"
        " RETURNING xmax <> 0", /* the row existed */
        request->arena, &rows, err, PG_TEXT(upload->id),
        PG_I64(next_expiry_ms(request->server->settings, upload->tenant_id)),
        PG_I64(upload->tenant_id), PG_I64(part), PG_I64((int64_t)request->body.size), PG_TEXT(key),
        PG_BYTES(sha256));
    if (!code)
        code = check_open(pg_row_count(rows), err);
    if (!code && pg_get_bool(rows, 0, 0))
        code = charge_replaced(request, connection, upload, err);
    return code ? code : quota_refuse(request, upload->tenant_id, pg_commit(connection, err), err);
}

/* An object that cannot be deleted now is swept later. */
static void discard_object(struct object_store *objects, const char *key)
{
    struct err ignored;
    if (object_delete(objects, key, &ignored))
        return;
}

/* An object without a row is not charged to anyone, so it is deleted at once, unless the row may
 * exist in spite of the error. */
static enum err_code store_part(struct request *request, const struct upload *upload, int64_t part,
                                struct span sha256, struct err *err)
{
    char key[PART_KEY_BYTES], again[DIGEST_ID_BYTES];
    digest_random_id(again);
    snprintf(key, sizeof(key), "part/%s.%" PRId64 ".%s", upload->id, part, again);
    enum err_code code = object_put(request->server->objects, key, request->body, err);
    if (code)
        return code;
    code = insert_part(request, upload, part, key, sha256, err);
    if (code && code != ERR_DATABASE)
        discard_object(request->server->objects, key);
    return code;
}

static enum err_code parse_part(const struct request *request, const struct upload *upload,
                                int64_t *ret_part, struct err *err)
{
    uint64_t part;
    struct span text = request->path_params[1];
    if (!span_parse_u64(text, &part) || part >= (uint64_t)upload->part_count)
        return err_set(err, ERR_INVALID, "part %.*s: parts of this upload are 0 to %" PRId64,
                       SPAN_PRINT(text), upload->part_count - 1);
    int64_t expected = part_size(upload, (int64_t)part);
    if (request->body.size != (size_t)expected)
        return err_set(err, ERR_INVALID, "part %" PRIu64 " has %zu bytes and must have %" PRId64,
                       part, request->body.size, expected);
    *ret_part = (int64_t)part;
    return ERR_NONE;
}

/* A client that lost the response sends the part again: equal bytes are not stored twice. Other
 * bytes are counted as those of a new upload are. */
static enum err_code receive_part(struct request *request, const struct upload *upload,
                                  int64_t part, struct err *err)
{
    uint8_t hash[DIGEST_BYTES];
    const struct span sha256 = span_of(hash, DIGEST_BYTES);
    enum part_state state;
    digest_sha256(request->body, hash);
    enum err_code code = find_part(request, upload, part, sha256, &state, err);
    if (code)
        return code;
    if (state == PART_SAME)
        return renew_upload(request, upload, err);
    if (state == PART_DIFFERS)
        code = quota_check_size(request, request->body.size, err);
    return code ? code : store_part(request, upload, part, sha256, err);
}

static enum err_code put_part(struct request *request, struct response *response, struct err *err)
{
    struct upload upload;
    int64_t part = 0;
    enum err_code code = find_mine(request, &upload, err);
    if (code)
        return code;
    code = parse_part(request, &upload, &part, err);
    if (code)
        return code;
    if (*upload.share_id)
        code = err_set(err, ERR_CONFLICT, "the upload is complete: its state names the share");
    if (code)
        return code;
    code = receive_part(request, &upload, part, err);
    if (code)
        return code;
    response->status = 204;
    return ERR_NONE;
}

static enum err_code show_upload(struct request *request, struct response *response,
                                 struct err *err)
{
    struct upload upload;
    struct upload_parts parts;
    char expires[CLOCK_TEXT_BYTES];
    enum err_code code = find_mine(request, &upload, err);
    if (code)
        return code;
    code = upload_assemble_read_parts(request, &upload, &parts, err);
    if (code)
        return code;
    buf_auto json;
    buf_init(&json, 16 << 20);
    buf_printf(&json,
               "{\"id\":\"%s\",\"size\":%" PRId64 ",\"part_bytes\":%" PRId64
               ",\"part_count\":%" PRId64 ",\"expires_at\":\"%s\",\"share_id\":",
               upload.id, upload.size_bytes, upload.part_bytes, upload.part_count,
               clock_format(upload.expires_ms * CLOCK_NS_PER_MS, expires));
    if (*upload.share_id)
        buf_append_json(&json, span_text(upload.share_id));
    else
        buf_append_text(&json, "null");
    buf_append_text(&json, ",\"filename\":");
    buf_append_json(&json, span_text(upload.filename));
    buf_append_text(&json, ",\"parts_received\":[");
    bool is_first = true;
    for (int64_t part = 0; part < upload.part_count; part++) {
        if (!parts.objects[part].key)
            continue;
        buf_printf(&json, "%s%" PRId64, is_first ? "" : ",", part);
        is_first = false;
    }
    buf_append_text(&json, "]}");
    response_add(request, response, "cache-control", "no-store");
    return response_buf(request, response, 200, "application/json", &json, err);
}

static enum err_code delete_upload(struct request *request, struct response *response,
                                   struct err *err)
{
    struct upload upload;
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = find_mine(request, &upload, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, upload.tenant_id, request->arena, err);
    if (code)
        return code;
    code = pg_query_values(connection, upload.tenant_id,
                           "DELETE FROM upload WHERE id = $1::text AND share_id IS NULL"
                           " AND (completing_until IS NULL OR completing_until <= now())",
                           request->arena, &result, err, PG_TEXT(upload.id));
    if (code)
        return code;
    if (pg_affected(result) != 1)
        code = err_set(err, ERR_CONFLICT,
                       "the upload is complete or being completed: delete the share instead");
    if (code)
        return code;
    code = quota_give_back(connection, upload.tenant_id, upload.size_bytes, request->arena, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    response->status = 204;
    return ERR_NONE;
}

static const struct route routes[] = {
    {HTTP_POST, "/api/v1/uploads", ACCESS_ANONYMOUS, SCOPE_SHARE, ROUTE_STORES, 16384,
     begin_upload},
    {HTTP_GET, "/api/v1/uploads/{id}", ACCESS_ANONYMOUS, SCOPE_SHARE, ROUTE_LIMIT_404, 0,
     show_upload},
    {HTTP_DELETE, "/api/v1/uploads/{id}", ACCESS_ANONYMOUS, SCOPE_SHARE, ROUTE_LIMIT_404, 0,
     delete_upload},
    {HTTP_PUT, "/api/v1/uploads/{id}/parts/{n}", ACCESS_ANONYMOUS, SCOPE_SHARE,
     ROUTE_LIMIT_404 | ROUTE_STORES, UPLOAD_PART_BYTES, put_part},
    /* The same for debug files, for tokens that may not create shares;
     * api/debuginfo/debuginfo_routes.h completes them. */
    {HTTP_POST, UPLOAD_DEBUGINFO_PATH, ACCESS_SCOPES, SCOPE_DEBUGINFO, ROUTE_STORES, 16384,
     begin_upload},
    {HTTP_GET, UPLOAD_DEBUGINFO_PATH "/{id}", ACCESS_SCOPES, SCOPE_DEBUGINFO, 0, 0, show_upload},
    {HTTP_DELETE, UPLOAD_DEBUGINFO_PATH "/{id}", ACCESS_SCOPES, SCOPE_DEBUGINFO, 0, 0,
     delete_upload},
    {HTTP_PUT, UPLOAD_DEBUGINFO_PATH "/{id}/parts/{n}", ACCESS_SCOPES, SCOPE_DEBUGINFO,
     ROUTE_STORES, UPLOAD_PART_BYTES, put_part},
};

const struct route_table upload_routes = {routes, sizeof(routes) / sizeof(*routes)};

/*
 * Creates a share. The bytes are decoded while another thread makes them durable; if both succeed,
 * one transaction, in one round trip, commits the row. Bytes that cannot be decoded are deleted
 * again. A crash before the commit leaves an object that the sweep deletes; after it, the share is
 * complete. For 100 KB the request waits for the disk three times: for file and folder, in parallel
 * with the decoding, then for the write-ahead log.
 */
#include "api/share/share.h"

#include "api/core/memory_gate.h"
#include "api/core/metrics.h"
#include "api/core/object_writer_thread.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/rate_limiter.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/idempotency.h"
#include "api/identity/password.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "api/report/symbol_resolver.h"
#include "api/share/profile_cache.h"
#include "api/share/share_runtime.h"
#include "api/share/share_settings.h"
#include "api/share/share_summary.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/low_priority.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

/* Everything that the row needs, collected before anything is written. */
struct new_share {
    char id[DIGEST_ID_BYTES];
    char delete_token[DIGEST_SECRET_BYTES];
    uint8_t delete_token_hash[DIGEST_BYTES];
    uint8_t raw_sha256[DIGEST_BYTES];
    char password_hash[DIGEST_PASSWORD_BYTES];
    char object_key[SHARE_OBJECT_KEY_BYTES];
    enum format format;
    struct buf summary;
    struct buf list_summary;
    struct profile *profile; /* NULL: not decoded, or owned by the cache */
    uint64_t held_bytes;     /* of the gate, for profile */
    int64_t expires_ms;      /* 0: never */
};

/* The decoding of an upload; without credentials it runs at low priority. */
struct decoding {
    struct request *request;
    struct span bytes;
    struct new_share *share;
    struct memory_gate_slot gate_slot;
    enum err_code code;
    struct err *err;
};

static void run_decoding(void *context)
{
    struct decoding *decoding = context;
    struct server *server = decoding->request->server;
    struct profile_limits limits =
        memory_gate_profile_limits(server->memory_gate, server->settings);
    struct new_share *share = decoding->share;
    decoding->code = memory_gate_decode(server->memory_gate, decoding->request->principal.tenant_id,
                                        decoding->bytes, &limits, &share->format, &share->profile,
                                        &decoding->gate_slot, decoding->err);
}

static enum err_code summarise(struct request *request, struct span bytes, struct new_share *share,
                               struct err *err)
{
    struct decoding decoding = {.request = request, .bytes = bytes, .share = share, .err = err};
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        low_priority_call(LOW_PRIORITY_NICE, run_decoding, &decoding);
    else
        run_decoding(&decoding);
    if (decoding.code)
        return decoding.code;
    share->held_bytes = decoding.gate_slot.held_bytes;
    const enum err_code code =
        share_summary_append(share->profile, decoding.gate_slot.peak_bytes, &share->summary, err);
    if (!code)
        share_summary_append_list(share->profile, &share->list_summary);
    return code;
}

/* Caches the decoded profile of a new share, since it is usually viewed next. */
static void keep_profile(struct request *request, struct new_share *share)
{
    struct server *server = request->server;
    symbol_resolver_note(server->symbol_resolver, request->principal.tenant_id, share->profile);
    profile_cache_keep(server->shares->profiles, share->id, share->profile);
    share->profile = NULL;
}

static void drop_profile(const struct request *request, struct new_share *share)
{
    profile_destroy(share->profile);
    memory_gate_leave(request->server->memory_gate, request->principal.tenant_id,
                      share->held_bytes);
    buf_fini(&share->summary);
    buf_fini(&share->list_summary);
}

static void take_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
}

/* Sets the members that the object needs. */
static void name_share(const struct share_source *source, struct new_share *share)
{
    digest_random_id(share->id);
    if (source->id)
        take_text(share->id, sizeof(share->id), source->id);
    share_object_key(share->id, share->object_key);
}

/* Sets the members that only the row needs. */
static enum err_code prepare_row(struct request *request, const struct share_settings *settings,
                                 const struct share_source *source, struct new_share *share,
                                 struct err *err)
{
    digest_random_secret(share->delete_token);
    if (source->delete_token)
        take_text(share->delete_token, sizeof(share->delete_token), source->delete_token);
    digest_sha256(span_text(share->delete_token), share->delete_token_hash);
    if (settings->expires_s)
        share->expires_ms = clock_wall_ns() / CLOCK_NS_PER_MS + settings->expires_s * 1000;
    if (settings->visibility != SHARE_PASSWORD)
        return ERR_NONE;
    return password_hash(request->server->limits->rate_limiter, SLOT_PASSWORD_SHARE,
                         span_text(request->address), settings->password, share->password_hash,
                         err);
}

static struct pg_value id_or_null(int64_t id)
{
    return id ? PG_I64(id) : PG_NULL;
}

/* The column row_bytes of the new row. */
static int64_t row_bytes(const struct share_settings *settings, const struct new_share *share)
{
    return (int64_t)(strlen(settings->title) + strlen(settings->description) +
                     strlen(settings->filename) + strlen(settings->labels) + share->summary.size +
                     share->list_summary.size);
}

static enum err_code insert_row(struct pg_connection *connection, struct request *request,
                                const struct share_settings *settings,
                                const struct share_source *source, const struct new_share *share,
                                struct err *err)
{
    bool has_password = settings->visibility == SHARE_PASSWORD;
    return pg_queue_values(
        connection, request->principal.tenant_id,
        "INSERT INTO share (id, tenant_id, user_id, token_id, title, description, visibility,"
        " password_hash, delete_token_hash, expires_at, idle_expiry_s, object_key, raw_bytes,"
        " raw_sha256, format, filename, labels, summary, list_summary, row_bytes)"
        " VALUES ($1::text, $2::bigint, $3::bigint,"
        " $4::bigint, $5::text, $6::text, $7::text, $8::text, $9::bytea,"
        " 'epoch'::timestamptz + $10::bigint * interval '1 ms', $11::bigint, $12::text,"
        " $13::bigint, $14::bytea, $15::text, $16::text, $17::json, $18::json, $19::json,"
        " $20::bigint)",
        request->arena, err, PG_TEXT(share->id), PG_I64(request->principal.tenant_id),
        id_or_null(request->principal.user_id), id_or_null(request->principal.token_id),
        PG_TEXT(settings->title), PG_TEXT(settings->description),
        PG_TEXT(share_settings_visibility_name(settings->visibility)),
        has_password ? PG_TEXT(share->password_hash) : PG_NULL,
        PG_BYTES(span_of(share->delete_token_hash, DIGEST_BYTES)),
        share->expires_ms ? PG_I64(share->expires_ms) : PG_NULL,
        settings->idle_expiry_s ? PG_I64(settings->idle_expiry_s) : PG_NULL,
        PG_TEXT(share->object_key), PG_I64((int64_t)source->bytes.size),
        PG_BYTES(span_of(share->raw_sha256, DIGEST_BYTES)), PG_TEXT(format_name(share->format)),
        PG_TEXT(settings->filename), PG_TEXT(settings->labels), PG_SPAN(buf_span(&share->summary)),
        PG_SPAN(buf_span(&share->list_summary)), PG_I64(row_bytes(settings, share)));
}

/* The upload's bytes, charged when it was announced, are now the share's. */
static enum err_code finish_upload(struct pg_connection *connection, struct request *request,
                                   const char *upload_id, const char *share_id, struct err *err)
{
    struct pg_result *result;
    enum err_code code =
        pg_query_values(connection, request->principal.tenant_id,
                        "UPDATE upload SET share_id = $2::text, completing_until = NULL"
                        " WHERE id = $1::text AND share_id IS NULL",
                        request->arena, &result, err, PG_TEXT(upload_id), PG_TEXT(share_id));
    if (code)
        return code;
    if (pg_affected(result) != 1)
        return err_set(err, ERR_CONFLICT, "the upload was completed or deleted meanwhile");
    return pg_query_values(connection, request->principal.tenant_id,
                           "DELETE FROM upload_part WHERE upload_id = $1::text", request->arena,
                           &result, err, PG_TEXT(upload_id));
}

/* The bytes of an upload in parts were charged already. */
static enum err_code charge_share(struct pg_connection *connection, struct request *request,
                                  const struct share_settings *settings,
                                  const struct share_source *source, const struct new_share *share,
                                  struct err *err)
{
    const int64_t raw = source->upload_id ? 0 : (int64_t)source->bytes.size;
    return quota_charge(request, connection, raw + row_bytes(settings, share), err);
}

/* *ret_is_unknown: the row may exist in spite of the error. */
static enum err_code commit_row(struct request *request, const struct share_settings *settings,
                                const struct share_source *source, const struct new_share *share,
                                bool *ret_is_unknown, struct err *err)
{
    pg_auto connection = NULL;
    int64_t tenant_id = request->principal.tenant_id;
    *ret_is_unknown = false;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, tenant_id, request->arena, err);
    if (code)
        return code;
    if (source->idempotency)
        code = idempotency_record(connection, request, source->idempotency, err);
    if (code)
        return code;
    code = insert_row(connection, request, settings, source, share, err);
    if (code)
        return code;
    if (source->upload_id)
        code = finish_upload(connection, request, source->upload_id, share->id, err);
    if (code)
        return code;
    code = charge_share(connection, request, settings, source, share, err);
    if (code)
        return code;
    code = audit_record(connection, request, "share.create", share->id, err);
    if (code)
        return code;
    code = quota_refuse(request, tenant_id, pg_commit(connection, err), err);
    if (code == ERR_NONE)
        quota_count_row_bytes(request, (uint64_t)row_bytes(settings, share));
    *ret_is_unknown = code == ERR_DATABASE;
    return code;
}

/* Deletes an object that no row will name; if that fails, it is swept later. */
static void discard_object(struct object_store *objects, const char *key)
{
    struct err ignored;
    if (object_delete(objects, key, &ignored))
        return;
}

/* Decodes the bytes and makes them durable, in parallel if they came in this request. After an
 * error the object is deleted or left to the sweep. */
static enum err_code take_bytes(struct request *request, const struct share_settings *settings,
                                const struct share_source *source, struct new_share *share,
                                struct err *err)
{
    struct object_writer_thread task;
    struct err put_err;
    if (!source->is_stored)
        object_writer_thread_start(&task, request->server->writers, request->server->objects,
                                   share->object_key, source->bytes);
    enum err_code put_code = ERR_NONE, code = summarise(request, source->bytes, share, err);
    if (!code)
        code = prepare_row(request, settings, source, share, err);
    if (!source->is_stored)
        put_code = object_writer_thread_finish(&task, &put_err);
    memcpy(share->raw_sha256, source->is_stored ? source->sha256 : task.sha256, DIGEST_BYTES);
    if (code && !put_code)
        discard_object(request->server->objects, share->object_key);
    if (code)
        return code;
    if (put_code)
        *err = put_err;
    return put_code;
}

static enum err_code store_share(struct request *request, const struct share_settings *settings,
                                 const struct share_source *source, struct new_share *share,
                                 struct err *err)
{
    bool is_unknown;
    enum err_code code = take_bytes(request, settings, source, share, err);
    if (code)
        return code;
    code = commit_row(request, settings, source, share, &is_unknown, err);
    if (code && !is_unknown)
        discard_object(request->server->objects, share->object_key);
    return code;
}

/* Appends Markdown that GitHub and others show as a picture that links to the share. */
static void append_markdown(struct buf *buf, const char *url, const char *title, bool may_preview)
{
    buf_append_text(buf, may_preview ? "[![" : "[");
    for (const char *at = *title ? title : "Profile"; *at; at++) {
        if (strchr("\\[]`*_<>!", *at))
            buf_append_byte(buf, '\\');
        buf_append_byte(buf, (uint8_t)*at);
    }
    if (may_preview)
        buf_printf(buf, "](%s/og.png)", url);
    buf_printf(buf, "](%s)", url);
}

static void append_member(struct buf *json, const char *name, struct span text)
{
    buf_printf(json, ",\"%s\":", name);
    buf_append_json(json, text);
}

static enum err_code respond_created(struct request *request, const char *id,
                                     const char *delete_token, const char *title, bool may_preview,
                                     int64_t expires_ms, struct response *response, struct err *err)
{
    struct arena *arena = request->arena;
    char expires[CLOCK_TEXT_BYTES];
    char *url = arena_printf(arena, "%s/p/%s", request->server->settings->public_url, id);
    buf_auto markdown;
    buf_init(&markdown, 16384);
    append_markdown(&markdown, url, title, may_preview);
    buf_auto json;
    buf_init(&json, 65536);
    buf_printf(&json, "{\"id\":\"%s\"", id);
    append_member(&json, "url", span_text(url));
    append_member(&json, "raw_url", span_text(arena_printf(arena, "%s/raw", url)));
    append_member(&json, "delete_token", span_text(delete_token));
    append_member(&json, "delete_url",
                  span_text(arena_printf(arena, "%s/delete#%s", url, delete_token)));
    if (expires_ms)
        append_member(&json, "expires_at",
                      span_text(clock_format(expires_ms * CLOCK_NS_PER_MS, expires)));
    else
        buf_append_text(&json, ",\"expires_at\":null");
    append_member(&json, "markdown", buf_span(&markdown));
    buf_append_byte(&json, '}');
    response_add(request, response, "location", url);
    response_add(request, response, "cache-control", "no-store");
    return response_buf(request, response, 201, "application/json", &json, err);
}

enum err_code share_create_respond_again(struct request *request, const char *id,
                                         const char *delete_token, struct response *response,
                                         struct err *err)
{
    struct share share;
    enum err_code code = share_find(request->server, span_text(id), request->arena, &share, err);
    if (code)
        return code;
    bool may_preview = share.visibility == SHARE_PUBLIC || share.visibility == SHARE_UNLISTED;
    return respond_created(request, id, delete_token, share.title, may_preview, share.expires_ms,
                           response, err);
}

static void count_created(struct request *request, enum format format, size_t bytes)
{
    char labels[64];
    snprintf(labels, sizeof(labels), "format=\"%s\"", format_name(format));
    struct metrics *metrics = request->server->metrics;
    metric_add(metrics_counter(metrics, "perfolio_shares_created_total", labels,
                               "Shares created, by the format of the profile."),
               1);
    metric_add(metrics_counter(metrics, "perfolio_share_bytes_total", labels,
                               "Bytes of the shares created, as uploaded."),
               (int64_t)bytes);
}

enum err_code share_create(struct request *request, const struct share_settings *settings,
                           const struct share_source *source, struct response *response,
                           struct err *err)
{
    if (source->bytes.size == 0)
        return err_set(err, ERR_INVALID, "the body is empty: send the profile's bytes");
    struct new_share share = {0};
    buf_init(&share.summary, SHARE_SUMMARY_BYTES);
    buf_init(&share.list_summary, SHARE_SUMMARY_BYTES);
    name_share(source, &share);
    enum err_code code = store_share(request, settings, source, &share, err);
    if (!code)
        keep_profile(request, &share);
    drop_profile(request, &share);
    if (code)
        return code;
    count_created(request, share.format, source->bytes.size);
    bool may_preview =
        settings->visibility == SHARE_PUBLIC || settings->visibility == SHARE_UNLISTED;
    return respond_created(request, share.id, share.delete_token, settings->title, may_preview,
                           share.expires_ms, response, err);
}

enum err_code share_create_once(struct request *request, const struct share_settings *settings,
                                struct span bytes, struct idempotency *idempotency,
                                struct response *response, struct err *err)
{
    struct share_source source = {.bytes = bytes, .idempotency = idempotency};
    if (idempotency->is_wanted) {
        source.id = idempotency->id;
        source.delete_token = idempotency->secret;
    }
    enum err_code code = share_create(request, settings, &source, response, err);
    if (!code)
        return ERR_NONE;
    code = idempotency_find_winner(request, code, idempotency, err);
    return code ? code
                : share_create_respond_again(request, idempotency->id, idempotency->secret,
                                             response, err);
}

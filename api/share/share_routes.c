/*
 * The routes of shares themselves: create, show, list, edit, delete, download, unlock.
 */
#include "api/share/share.h"

#include "api/core/disk.h"
#include "api/core/integrity.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/form_body.h"
#include "api/http/json_body.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/idempotency.h"
#include "api/identity/password.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "api/share/share_access.h"
#include "api/share/share_admin.h"
#include "api/share/share_charge.h"
#include "api/share/share_list.h"
#include "api/share/share_runtime.h"
#include "api/share/share_settings.h"
#include "api/share/share_symbolization.h"
#include "api/share/view_counter.h"
#include "api/upload/upload_slot.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "lib/profile/formats/format.h"

#include <stdio.h>
#include <string.h>

static const size_t json_body_bytes = 256 * 1024;

enum { SHARE_JSON_MAX_BYTES = 8 << 20 };

enum err_code share_routes_create(struct request *request, struct response *response,
                                  struct err *err)
{
    struct share_settings settings;
    struct idempotency idempotency;
    enum err_code code = form_body_check(request, false, err);
    if (code)
        return code;
    code = share_settings_read(request, &settings, err);
    if (code)
        return code;
    code = idempotency_find(request, &idempotency, err);
    if (code)
        return code;
    if (idempotency.is_known)
        return share_create_respond_again(request, idempotency.id, idempotency.secret, response,
                                          err);
    code = upload_slot_take(request, err);
    if (code)
        return code;
    code = quota_take_upload(request, request->body.size, err);
    if (code)
        return code;
    code = share_create_once(request, &settings, request->body, &idempotency, response, err);
    return form_body_explain(request, code, err);
}

/* Scans an index for at most COMMENT_MAX_PER_SHARE rows of the share. */
static enum err_code count_comments(struct request *request, struct share *share, struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, share->tenant_id,
                           "SELECT count(*) FROM share_comment WHERE share_id = $1::text",
                           request->arena, &result, err, PG_TEXT(share->id));
    if (code)
        return code;
    share->reader_comments = pg_get_text(result, 0, 0);
    return ERR_NONE;
}

static enum err_code respond_share(struct request *request, struct share *share,
                                   struct response *response, struct err *err)
{
    uint64_t generation;
    const char *symbolization;
    enum err_code code = count_comments(request, share, err);
    if (code)
        return code;
    code = share_symbolization_describe(request, share, 1, false, &generation, &symbolization, err);
    if (code)
        return code;
    bool is_editor = share_access_check_edit(request, share, err) == ERR_NONE;
    buf_auto json;
    buf_init(&json, SHARE_JSON_MAX_BYTES);
    share_append_json(request, share, is_editor, &json);
    if (!buf_failed(&json) && symbolization) {
        json.size--; /* the closing brace */
        buf_printf(&json, ",\"symbolization\":%s}", symbolization);
    }
    response->may_compress = true;
    response_add(request, response, "cache-control", "private, no-cache");
    return response_buf(request, response, 200, "application/json", &json, err);
}

static enum err_code show_share(struct request *request, struct response *response, struct err *err)
{
    static const char *const known[] = {NULL};
    struct share share;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    return respond_share(request, &share, response, err);
}

/* The share of the path, if the request may change it. */
static enum err_code find_to_edit(struct request *request, struct share *ret_share, struct err *err)
{
    enum err_code code =
        share_find(request->server, request->path_params[0], request->arena, ret_share, err);
    return code ? code : share_access_check_edit(request, ret_share, err);
}

static enum err_code delete_share(struct request *request, struct response *response,
                                  struct err *err)
{
    struct share share;
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = find_to_edit(request, &share, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, share.tenant_id, request->arena, err);
    if (code)
        return code;
    code = pg_query_values(connection, share.tenant_id,
                           "UPDATE share SET state = 'deleting', gone_reason = 'deleted',"
                           " gone_at = now() WHERE id = $1::text AND state = 'live'",
                           request->arena, &result, err, PG_TEXT(share.id));
    if (code)
        return code;
    code = audit_record_for(connection, request, share.tenant_id, "share.delete", share.id, err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    share_runtime_forget(request->server, share.id);
    response->status = 204;
    return ERR_NONE;
}

/* The changes of a PATCH; NULL texts are unchanged. */
struct share_edit {
    const char *title;
    const char *description;
    const char *password_hash;
    enum share_visibility visibility;
    bool has_expires;
    int64_t expires_ms; /* 0: never */
};

static enum err_code read_edit_texts(const struct json_body *body, struct share_edit *edit,
                                     struct err *err)
{
    enum err_code code =
        json_body_text(body, "title", 0, 4 * SHARE_TITLE_CHARACTERS, &edit->title, err);
    if (code)
        return code;
    if (edit->title)
        code = share_text_check("title", span_text(edit->title), SHARE_TITLE_CHARACTERS, true, err);
    if (code)
        return code;
    code = json_body_text(body, "description", 0, (size_t)4 * SHARE_DESCRIPTION_CHARACTERS,
                          &edit->description, err);
    if (code)
        return code;
    if (edit->description)
        code = share_text_check("description", span_text(edit->description),
                                SHARE_DESCRIPTION_CHARACTERS, false, err);
    return code;
}

static enum err_code read_edit_expires(struct request *request, const struct json_body *body,
                                       const struct share *share, struct share_edit *edit,
                                       struct err *err)
{
    const char *text;
    int64_t seconds;
    enum err_code code = json_body_text(body, "expires", 0, 40, &text, err);
    if (code || !text)
        return code;
    code = share_settings_parse_expires(request->server, share->tenant_id, span_text(text),
                                        &seconds, err);
    edit->has_expires = true;
    edit->expires_ms = seconds ? clock_wall_ns() / CLOCK_NS_PER_MS + seconds * 1000 : 0;
    return code;
}

static enum err_code hash_password(struct request *request, const char *password,
                                   struct share_edit *edit, struct err *err)
{
    char *hash = arena_new(request->arena, char, DIGEST_PASSWORD_BYTES);
    enum err_code code = share_settings_check_password(span_text(password), err);
    if (!code)
        code = password_hash(request->server->limits->rate_limiter, SLOT_PASSWORD_SHARE,
                             span_text(request->address), span_text(password), hash, err);
    edit->password_hash = hash;
    return code;
}

static enum err_code read_edit_visibility(struct request *request, const struct json_body *body,
                                          const struct share *share, struct share_edit *edit,
                                          struct err *err)
{
    const char *visibility, *password;
    edit->visibility = share->visibility;
    edit->password_hash = share->password_hash;
    enum err_code code = json_body_text(body, "visibility", 0, 40, &visibility, err);
    if (code)
        return code;
    if (visibility)
        code = share_settings_parse_visibility(span_text(visibility), &edit->visibility, err);
    if (code)
        return code;
    code = json_body_text(body, "password", 0, SHARE_PASSWORD_MAX_BYTES, &password, err);
    if (code)
        return code;
    if (edit->visibility == SHARE_TEAM && share->tenant_id == TENANT_ANONYMOUS)
        return err_set(
            err, ERR_INVALID,
            "visibility team needs a share of a team: sign in, and share the profile again");
    if (edit->visibility != SHARE_PASSWORD && password)
        return err_set(err, ERR_INVALID, "password is only for visibility password: leave it out");
    if (edit->visibility == SHARE_PASSWORD && password)
        return hash_password(request, password, edit, err);
    if (edit->visibility == SHARE_PASSWORD && share->visibility != SHARE_PASSWORD)
        return err_set(err, ERR_INVALID,
                       "visibility password needs a password: send one in \"password\"");
    return ERR_NONE;
}

static enum err_code read_edit(struct request *request, const struct share *share,
                               struct share_edit *edit, struct err *err)
{
    static const char *const known[] = {"title",      "description", "expires",
                                        "visibility", "password",    NULL};
    struct json_body *body;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = read_edit_texts(body, edit, err);
    if (code)
        return code;
    code = read_edit_expires(request, body, share, edit, err);
    if (code)
        return code;
    return read_edit_visibility(request, body, share, edit, err);
}

/* The bytes of the texts that an edit can change. */
#define EDIT_BYTES "octet_length(title) + octet_length(description)"

/* Locks the row; *ret_bytes are those before the edit. */
static enum err_code lock_to_edit(struct request *request, struct pg_connection *connection,
                                  const struct share *share, int64_t *ret_bytes, struct err *err)
{
    struct pg_result *result;
    enum err_code code =
        pg_query_values(connection, share->tenant_id,
                        "SELECT " EDIT_BYTES " FROM share WHERE id = $1::text AND state = 'live'"
                        " FOR NO KEY UPDATE",
                        request->arena, &result, err, PG_TEXT(share->id));
    if (code)
        return code;
    if (pg_row_count(result) != 1)
        return err_set(err, ERR_GONE,
                       "this share has just been deleted: ask its creator for another link");
    *ret_bytes = pg_get_i64(result, 0, 0);
    return ERR_NONE;
}

static enum err_code update_row(struct request *request, struct pg_connection *connection,
                                const struct share *share, const struct share_edit *edit,
                                int64_t *ret_bytes, struct err *err)
{
    struct pg_result *result;
    bool has_password = edit->visibility == SHARE_PASSWORD;
    enum err_code code = pg_query_values(
        connection, share->tenant_id,
        "UPDATE share SET title = coalesce($2::text, title),"
        " description = coalesce($3::text, description), visibility = $4::text,"
        " password_hash = $5::text, expires_at = CASE WHEN $6::boolean THEN"
        " 'epoch'::timestamptz + $7::bigint * interval '1 ms' ELSE expires_at END,"
        " idle_expiry_s = CASE WHEN $6::boolean THEN NULL ELSE idle_expiry_s END"
        " WHERE id = $1::text RETURNING " EDIT_BYTES,
        request->arena, &result, err, PG_TEXT(share->id),
        edit->title ? PG_TEXT(edit->title) : PG_NULL,
        edit->description ? PG_TEXT(edit->description) : PG_NULL,
        PG_TEXT(share_settings_visibility_name(edit->visibility)),
        has_password ? PG_TEXT(edit->password_hash) : PG_NULL, PG_BOOL(edit->has_expires),
        edit->expires_ms ? PG_I64(edit->expires_ms) : PG_NULL);
    if (code)
        return code;
    *ret_bytes = pg_get_i64(result, 0, 0);
    return ERR_NONE;
}

/* Whether the edit changes who can see the share, or how long; share: before the edit. */
static bool changes_access(const struct share *share, const struct share_edit *edit)
{
    return edit->has_expires || edit->visibility != share->visibility ||
           edit->password_hash != share->password_hash; /* another text, even if it is equal */
}

/* Whether the edit does nothing but take access away, which is possible below the disk's reserve.
 */
static bool only_restricts(const struct share *share, const struct share_edit *edit)
{
    static const int strictness[] = {
        [SHARE_PUBLIC] = 0, [SHARE_UNLISTED] = 1, [SHARE_TEAM] = 2, [SHARE_PASSWORD] = 2};
    return !edit->title && !edit->description && !edit->has_expires &&
           strictness[edit->visibility] > strictness[share->visibility];
}

/* Texts are edited often, so their edits are recorded once an hour (*ret_is_hourly), and others
 * always. */
static enum err_code record_edit(struct request *request, struct pg_connection *connection,
                                 const struct share *share, const struct share_edit *edit,
                                 bool *ret_is_hourly, struct err *err)
{
    *ret_is_hourly = false;
    if (changes_access(share, edit))
        return audit_record_for(connection, request, share->tenant_id, "share.edit", share->id,
                                err);
    return audit_record_hourly(connection, request, share->tenant_id, "share.edit", share->id,
                               ret_is_hourly, err);
}

static enum err_code write_edit(struct request *request, const struct share *share,
                                const struct share_edit *edit, struct err *err)
{
    pg_auto connection = NULL;
    int64_t before = 0, after = 0;
    enum err_code code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, share->tenant_id, request->arena, err);
    if (code)
        return code;
    code = lock_to_edit(request, connection, share, &before, err);
    if (code)
        return code;
    code = update_row(request, connection, share, edit, &after, err);
    if (code)
        return code;
    code = share_charge_change(request, connection, share, after - before, err);
    if (code)
        return code;
    bool is_hourly;
    code = record_edit(request, connection, share, edit, &is_hourly, err);
    if (code == ERR_NONE)
        code = quota_refuse(request, share->tenant_id, pg_commit(connection, err), err);
    if (code && is_hourly)
        audit_undo_hourly(request, share->tenant_id, "share.edit", share->id);
    return code;
}

static enum err_code edit_share(struct request *request, struct response *response, struct err *err)
{
    struct share share;
    struct share_edit edit = {0};
    enum err_code code = find_to_edit(request, &share, err);
    if (code)
        return code;
    code = read_edit(request, &share, &edit, err);
    if (code)
        return code;
    if (!only_restricts(&share, &edit))
        code = disk_check(request->server->disk, err);
    if (code)
        return code;
    code = write_edit(request, &share, &edit, err);
    if (code)
        return code;
    code = share_find(request->server, request->path_params[0], request->arena, &share, err);
    if (code)
        return code;
    return respond_share(request, &share, response, err);
}

/* The name of a download: that of the upload, or the id with the extension of its format. */
static const char *download_name(struct request *request, const struct share *share,
                                 const uint8_t start[4])
{
    if (*share->filename)
        return share->filename;
    enum format format;
    bool is_known = format_find(span_text(share->format), &format);
    const char *packing = "";
    if (start[0] == 0x1f && start[1] == 0x8b)
        packing = ".gz";
    else if (start[0] == 0x28 && start[1] == 0xb5 && start[2] == 0x2f && start[3] == 0xfd)
        packing = ".zst";
    return arena_printf(request->arena, "%s%s%s", share->id,
                        is_known ? format_extension(format) : "", packing);
}

/* Sets the body of a download and reads its first bytes; from a bucket this is a small request,
 * which also finds a lost object. */
static enum err_code open_download(struct request *request, struct response *response,
                                   const struct share *share, uint8_t ret_start[4], struct err *err)
{
    static const char type[] = "application/octet-stream";
    const struct integrity_object object = share_stored_object(share);
    const size_t size = object.bytes < 4 ? (size_t)object.bytes : 4;
    if (object_store_makes_copies(request->server->objects)) {
        buf_auto start;
        buf_init(&start, 4);
        const enum err_code code = share_read_range(request->server, share, 0, size, &start, err);
        if (code)
            return code;
        memcpy(ret_start, start.data, size);
        response_file(response, 200, type, -1, object.bytes);
        response_stored(request, response, &object);
        return ERR_NONE;
    }
    int fd;
    const enum err_code code = share_open_object(request->server, share, &fd, err);
    if (code)
        return code;
    response_file(response, 200, type, fd, object.bytes);
    if (os_pread(fd, ret_start, size, 0) < 0)
        return object_fail_reading(err, "cannot read object", object.key);
    return ERR_NONE;
}

static enum err_code download_share(struct request *request, struct response *response,
                                    struct err *err)
{
    static const char *const known[] = {NULL};
    struct share share;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    char etag[DIGEST_HEX_BYTES];
    digest_hex(share.raw_sha256, etag);
    view_counter_count(request->server->shares->views, span_text(share.id), request->address,
                       request->start_ns);
    share_access_add_robots(request, response, &share);
    response->is_open_to_sites = share_access_is_open(&share);
    if (response_is_cached(request, response, arena_printf(request->arena, "\"%s\"", etag),
                           share_access_cache_control(&share)))
        return ERR_NONE;
    uint8_t start[4] = {0};
    const struct integrity_object object = share_stored_object(&share);
    code = request_take_slot(request, request->server->limits->downloads, share.id,
                             "several downloads of this share are being started, and others wait; "
                             "try again in a few seconds",
                             err);
    if (code)
        return code;
    code = open_download(request, response, &share, start, err);
    if (code)
        return code;
    response_add(request, response, "content-disposition",
                 share_attachment(request->arena, download_name(request, &share, start)));
    response->file_check = integrity_stream_create(request->server, request->arena, &object);
    return ERR_NONE;
}

/* "password=…&…" of a form; false if it has no such field. */
static bool form_password(struct request *request, struct span *ret_password)
{
    struct request form = *request; /* a form's body has the syntax of a query */
    form.query = request->body;
    return request_query(&form, "password", ret_password);
}

static enum err_code read_unlock(struct request *request, bool is_form, struct span *ret_password,
                                 struct err *err)
{
    static const char *const known[] = {"password", NULL};
    if (is_form) {
        if (form_password(request, ret_password))
            return ERR_NONE;
        return err_set(err, ERR_INVALID, "password is missing in the form");
    }
    struct json_body *body;
    const char *password;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = json_body_text(body, "password", 1, SHARE_PASSWORD_MAX_BYTES, &password, err);
    if (code)
        return code;
    *ret_password = span_text(password);
    return ERR_NONE;
}

static enum err_code unlock_share(struct request *request, struct response *response,
                                  struct err *err)
{
    struct share share;
    struct span password;
    bool is_form = span_starts_with(request_field(request, "content-type"),
                                    "application/x-www-form-urlencoded");
    enum err_code code =
        share_find(request->server, request->path_params[0], request->arena, &share, err);
    if (code)
        return code;
    code = read_unlock(request, is_form, &password, err);
    if (code)
        return code;
    if (share.visibility != SHARE_PASSWORD)
        return err_set(err, ERR_CONFLICT, "this share has no password: open its link without one");
    code = share_access_unlock(request, response, &share, password, err);
    if (code)
        return code;
    response->status = is_form ? 303 : 204;
    if (is_form)
        response_add(request, response, "location",
                     arena_printf(request->arena, "/p/%s", share.id));
    return ERR_NONE;
}

#define READ_FLAGS (ROUTE_LIMIT_404 | ROUTE_CORS)
#define DOWNLOAD_FLAGS (ROUTE_LIMIT_404 | ROUTE_CORS_IF_OPEN | ROUTE_DOWNLOAD)

static const struct route routes[] = {
    {HTTP_GET, "/api/v1/shares", ACCESS_SCOPES, SCOPE_READ, 0, 0, share_list_handle},
    {HTTP_GET, "/api/v1/shares/{id}", ACCESS_PUBLIC, 0, READ_FLAGS, 0, show_share},
    {HTTP_PATCH, "/api/v1/shares/{id}", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404 | ROUTE_NEEDS_NO_SPACE,
     json_body_bytes, edit_share},
    {HTTP_DELETE, "/api/v1/shares/{id}", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404 | ROUTE_SECURITY, 0,
     delete_share},
    {HTTP_GET, "/api/v1/shares/{id}/raw", ACCESS_PUBLIC, 0, DOWNLOAD_FLAGS, 0, download_share},
    {HTTP_GET, "/p/{id}/raw", ACCESS_PUBLIC, 0, DOWNLOAD_FLAGS, 0, download_share},
    {HTTP_POST, "/api/v1/shares/{id}/unlock", ACCESS_PUBLIC, 0,
     ROUTE_LIMIT_404 | ROUTE_NO_CSRF | ROUTE_NEEDS_NO_SPACE | ROUTE_PASSWORD, 4096, unlock_share},
    {HTTP_POST, "/api/v1/shares/{id}/reports", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404 | ROUTE_NO_CSRF,
     16384, share_admin_report},
    {HTTP_GET, "/api/v1/admin/reports", ACCESS_SCOPES, SCOPE_OPERATOR, 0, 0,
     share_admin_list_reports},
    {HTTP_POST, "/api/v1/admin/reports/{id}/close", ACCESS_SCOPES, SCOPE_OPERATOR, 0, 4096,
     share_admin_close_report},
    {HTTP_POST, "/api/v1/admin/shares/{id}/takedown", ACCESS_SCOPES, SCOPE_OPERATOR, 0, 16384,
     share_admin_take_down},
};

const struct route_table share_routes = {routes, sizeof(routes) / sizeof(*routes)};

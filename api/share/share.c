#include "api/share/share.h"

#include "api/core/integrity.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/share/share_access.h"
#include "api/share/share_row.h"
#include "api/share/share_settings.h"
#include "api/share/share_summary.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

const char *share_object_key(const char *id, char ret_key[SHARE_OBJECT_KEY_BYTES])
{
    snprintf(ret_key, SHARE_OBJECT_KEY_BYTES, "share/%s", id);
    return ret_key;
}

struct integrity_object share_stored_object(const struct share *share)
{
    return (struct integrity_object){.kind = INTEGRITY_SHARE,
                                     .tenant_id = share->tenant_id,
                                     .row = share->id,
                                     .key = share->object_key,
                                     .bytes = share->raw_bytes,
                                     .sha256 = share->raw_sha256};
}

static enum err_code fail_deleted(struct err *err)
{
    return err_set(err, ERR_GONE,
                   "this share has just been deleted: ask its creator for another link");
}

enum err_code share_open_object(struct server *server, const struct share *share, int *ret_fd,
                                struct err *err)
{
    const struct integrity_object object = share_stored_object(share);
    const enum err_code code = integrity_open(server, &object, ret_fd, err);
    return code == ERR_NOT_FOUND ? fail_deleted(err) : code;
}

enum err_code share_read_range(struct server *server, const struct share *share, uint64_t offset,
                               size_t size, struct buf *buf, struct err *err)
{
    const struct integrity_object object = share_stored_object(share);
    const enum err_code code = integrity_read_range(server, &object, offset, size, buf, err);
    return code == ERR_NOT_FOUND ? fail_deleted(err) : code;
}

enum err_code share_find(struct server *server, struct span id, struct arena *arena,
                         struct share *ret_share, struct err *err)
{
    if (!digest_is_id(id))
        return err_set(err, ERR_NOT_FOUND,
                       "there is no such share: an id has 22 letters and digits; check that the "
                       "link is complete");
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT, "SELECT * FROM share_find($1::text)", arena,
                           &result, err, PG_SPAN(id));
    if (code)
        return code;
    if (pg_row_count(result) == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no share %.*s" SHARE_NOT_FOUND_ADVICE,
                       SPAN_PRINT(id));
    if (strcmp(share_row_state(result, 0), "live") != 0) {
        const char *reason = share_row_gone_reason(result, 0);
        bool has_expired = strcmp(reason, "expired") == 0;
        return err_set(err, ERR_GONE, "this share %s %s: ask its creator for another link",
                       has_expired ? "has" : "was", reason);
    }
    return share_row_read(result, 0, arena_strndup(arena, id.data, id.size), ret_share, err);
}

/* The text in a JSON string that buf_append_json wrote; "" if it contains an escape. Used for names
 * in a page's metadata. */
static const char *unquote_json(struct arena *arena, struct span json)
{
    if (json.size < 2 || memchr(json.data, '\\', json.size))
        return "";
    return arena_strndup(arena, json.data + 1, json.size - 2);
}

enum err_code share_find_public_metadata(struct server *server, struct span id, struct arena *arena,
                                         struct share_public_metadata *ret_metadata,
                                         struct err *err)
{
    struct share share;
    enum err_code code = share_find(server, id, arena, &share, err);
    if (code)
        return code;
    bool is_open = share.visibility == SHARE_PUBLIC || share.visibility == SHARE_UNLISTED;
    struct span sample_type = share_summary_default_sample_type(span_text(share.summary));
    *ret_metadata = (struct share_public_metadata){
        .title = is_open ? share.title[0] ? share.title : share.filename : "",
        .description = is_open ? share.description : "",
        .facts = is_open ? share_summary_describe(share.summary, arena) : "",
        .may_preview = is_open,
        .may_index = share.visibility == SHARE_PUBLIC,
        .sample_type = is_open ? unquote_json(arena, sample_type) : "",
        .format = is_open ? share.format : "",
    };
    return ERR_NONE;
}

static void append_text_member(struct buf *buf, const char *name, const char *text)
{
    buf_printf(buf, ",\"%s\":", name);
    buf_append_json(buf, span_text(text));
}

static void append_time_member(struct buf *buf, const char *name, int64_t time_ms)
{
    char text[CLOCK_TEXT_BYTES];
    if (time_ms == 0)
        buf_printf(buf, ",\"%s\":null", name);
    else
        buf_printf(buf, ",\"%s\":\"%s\"", name, clock_format(time_ms * CLOCK_NS_PER_MS, text));
}

/* Appends the members of an object to another object: "{…}" without its braces. */
static void append_members(struct buf *buf, const char *object)
{
    size_t size = strlen(object);
    if (size > 2) {
        buf_append_byte(buf, ',');
        buf_append(buf, object + 1, size - 2);
    }
}

static bool is_mine(const struct principal *principal, const struct share *share)
{
    return (principal->user_id && principal->user_id == share->user_id) ||
           (principal->token_id && principal->token_id == share->token_id);
}

void share_append_json(const struct request *request, const struct share *share, bool is_editor,
                       struct buf *buf)
{
    const char *public_url = request->server->settings->public_url;
    buf_printf(buf, "{\"id\":\"%s\"", share->id);
    buf_append_text(buf, ",\"url\":");
    buf_append_json(buf, span_text(arena_printf(request->arena, "%s/p/%s", public_url, share->id)));
    buf_append_text(buf, ",\"raw_url\":");
    buf_append_json(buf,
                    span_text(arena_printf(request->arena, "%s/p/%s/raw", public_url, share->id)));
    append_text_member(buf, "title", share->title);
    append_text_member(buf, "description", share->description);
    append_text_member(buf, "visibility", share_settings_visibility_name(share->visibility));
    append_time_member(buf, "created_at", share->created_ms);
    append_time_member(buf, "expires_at", share->expires_ms);
    buf_printf(buf, ",\"views\":%" PRId64 ",\"raw_bytes\":%" PRIu64, share->views,
               share->raw_bytes);
    append_text_member(buf, "format", share->format);
    append_text_member(buf, "filename", share->filename);
    buf_printf(buf, ",\"labels\":%s", share->labels);
    append_members(buf, share->summary);
    if (share->reader_comments)
        buf_printf(buf, ",\"reader_comments\":%s", share->reader_comments);
    buf_printf(buf, ",\"can_edit\":%s,\"mine\":%s}", is_editor ? "true" : "false",
               is_mine(&request->principal, share) ? "true" : "false");
}

const char *share_attachment(struct arena *arena, const char *name)
{
    buf_auto exact;
    buf_init(&exact, 8192);
    buf_append_url(&exact, span_text(name));
    char *plain = arena_strdup(arena, name);
    for (char *at = plain; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
              (*at >= '0' && *at <= '9') || strchr("._-+ ", *at)))
            *at = '_';
    return arena_printf(arena, "attachment; filename=\"%s\"; filename*=UTF-8''%.*s", plain,
                        SPAN_PRINT(buf_span(&exact)));
}

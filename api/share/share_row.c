#include "api/share/share_row.h"

#include "api/share/share_settings.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

/* Columns of share_find(), in its order. */
enum {
    COLUMN_TENANT,
    COLUMN_USER,
    COLUMN_TOKEN,
    COLUMN_STATE,
    COLUMN_GONE_REASON,
    COLUMN_TITLE,
    COLUMN_DESCRIPTION,
    COLUMN_VISIBILITY,
    COLUMN_PASSWORD_HASH,
    COLUMN_DELETE_TOKEN_HASH,
    COLUMN_CREATED,
    COLUMN_EXPIRES,
    COLUMN_IDLE_EXPIRY,
    COLUMN_OBJECT_KEY,
    COLUMN_RAW_BYTES,
    COLUMN_RAW_SHA256,
    COLUMN_FORMAT,
    COLUMN_FILENAME,
    COLUMN_LABELS,
    COLUMN_SUMMARY,
    COLUMN_VIEWS
};

enum err_code share_row_read(const struct pg_result *result, int row, const char *id,
                             struct share *ret_share, struct err *err)
{
    enum share_visibility visibility;
    enum err_code code = share_settings_parse_visibility(
        span_text(pg_get_text(result, row, COLUMN_VISIBILITY)), &visibility, err);
    if (code)
        return err_add(err, "reading share %s", id);
    *ret_share = (struct share){
        .id = id,
        .tenant_id = pg_get_i64(result, row, COLUMN_TENANT),
        .user_id = pg_get_i64(result, row, COLUMN_USER),
        .token_id = pg_get_i64(result, row, COLUMN_TOKEN),
        .visibility = visibility,
        .password_hash = pg_get_text(result, row, COLUMN_PASSWORD_HASH),
        .delete_token_hash = pg_get_bytes(result, row, COLUMN_DELETE_TOKEN_HASH),
        .title = pg_get_text(result, row, COLUMN_TITLE),
        .description = pg_get_text(result, row, COLUMN_DESCRIPTION),
        .created_ms = pg_get_i64(result, row, COLUMN_CREATED),
        .expires_ms = pg_get_i64(result, row, COLUMN_EXPIRES),
        .idle_expiry_s = pg_get_i64(result, row, COLUMN_IDLE_EXPIRY),
        .object_key = pg_get_text(result, row, COLUMN_OBJECT_KEY),
        .raw_bytes = (uint64_t)pg_get_i64(result, row, COLUMN_RAW_BYTES),
        .raw_sha256 = pg_get_bytes(result, row, COLUMN_RAW_SHA256),
        .format = pg_get_text(result, row, COLUMN_FORMAT),
        .filename = pg_get_text(result, row, COLUMN_FILENAME),
        .labels = pg_get_text(result, row, COLUMN_LABELS),
        .summary = pg_get_text(result, row, COLUMN_SUMMARY),
        .views = pg_get_i64(result, row, COLUMN_VIEWS),
    };
    return ERR_NONE;
}

const char *share_row_state(const struct pg_result *result, int row)
{
    return pg_get_text(result, row, COLUMN_STATE);
}

const char *share_row_gone_reason(const struct pg_result *result, int row)
{
    return pg_get_text(result, row, COLUMN_GONE_REASON);
}

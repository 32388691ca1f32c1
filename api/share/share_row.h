/*
 * share_row: rows of the table share, in the columns and the order of the function share_find().
 */
#ifndef API_SHARE_SHARE_ROW_H
#define API_SHARE_SHARE_ROW_H

#include "api/share/share.h"

struct pg_result;

/* The same columns for a SELECT from the table share "AS s"; the summary is the one for lists
 * (share_summary_append_list). */
#define SHARE_ROW_LIST_COLUMNS                                                                     \
    "s.tenant_id, s.user_id, s.token_id, s.state, s.gone_reason, s.title, s.description, "         \
    "s.visibility, s.password_hash, s.delete_token_hash, "                                         \
    "(extract(epoch FROM s.created_at) * 1000)::bigint, "                                          \
    "(extract(epoch FROM s.expires_at) * 1000)::bigint, s.idle_expiry_s, s.object_key, "           \
    "s.raw_bytes, s.raw_sha256, s.format, s.filename, s.labels::text, "                            \
    "s.list_summary::text, s.views"
enum { SHARE_ROW_COLUMN_COUNT = 21 };

/* Reads a row. id is borrowed and must live as long as the result's arena. Errors: ERR_INVALID (a
 * row that this version cannot read). */
enum err_code share_row_read(const struct pg_result *result, int row, const char *id,
                             struct share *ret_share, struct err *err) MUST_USE;
const char *share_row_state(const struct pg_result *result, int row);
const char *share_row_gone_reason(const struct pg_result *result, int row);

#endif

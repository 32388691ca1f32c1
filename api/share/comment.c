#include "api/share/comment.h"

#include "api/core/server.h"
#include "api/http/json_body.h"
#include "api/http/json_response.h"
#include "api/http/rate_limiter.h"
#include "api/http/request_limits.h"
#include "api/identity/audit.h"
#include "api/identity/quota.h"
#include "api/identity/tenant.h"
#include "api/share/share.h"
#include "api/share/share_access.h"
#include "api/share/share_charge.h"
#include "api/share/viewer_path.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/input/share_text.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <stdio.h>

/* In the order of enum column. */
#define COLUMNS                                                                                    \
    "n, user_id, author, text, pin_hash, pin_function, view, rfc3339(created_at),"                 \
    " rfc3339(edited_at)"
/* The bytes that a comment adds to row_bytes of its share. */
#define BYTES                                                                                      \
    "octet_length(author) + octet_length(text) + coalesce(octet_length(pin_function), 0)"          \
    " + coalesce(octet_length(view), 0)"
enum column {
    COLUMN_N,
    COLUMN_USER,
    COLUMN_AUTHOR,
    COLUMN_TEXT,
    COLUMN_PIN_HASH,
    COLUMN_PIN_FUNCTION,
    COLUMN_VIEW,
    COLUMN_CREATED,
    COLUMN_EDITED,
    COLUMN_BYTES /* only of a comment that was written */
};

struct comment {
    const char *text;
    const char *pin_hash; /* NULL: none, like the function */
    const char *pin_function;
    const char *view;   /* NULL: none */
    const char *author; /* the name as others see it; set when it is written */
};

static bool may_delete_all(const struct request *request, const struct share *share)
{
    return request->principal.kind == PRINCIPAL_USER && request->principal.role == ROLE_OWNER &&
           request->principal.tenant_id == share->tenant_id;
}

static void append_comment(const struct request *request, const struct share *share,
                           const struct pg_result *rows, int row, const char *name,
                           struct json_response *json)
{
    bool is_mine = request->principal.user_id != 0 &&
                   request->principal.user_id == pg_get_i64(rows, row, COLUMN_USER);
    json_response_open(json, name, '{');
    json_response_cell_i64(json, "n", rows, row, COLUMN_N);
    json_response_cell_text(json, "author", rows, row, COLUMN_AUTHOR);
    json_response_cell_text(json, "text", rows, row, COLUMN_TEXT);
    if (pg_is_null(rows, row, COLUMN_PIN_HASH)) {
        json_response_null(json, "pin");
    } else {
        json_response_open(json, "pin", '{');
        json_response_cell_text(json, "hash", rows, row, COLUMN_PIN_HASH);
        json_response_cell_text(json, "function", rows, row, COLUMN_PIN_FUNCTION);
        json_response_close(json, '}');
    }
    json_response_cell_text(json, "view", rows, row, COLUMN_VIEW);
    json_response_cell_text(json, "created_at", rows, row, COLUMN_CREATED);
    json_response_cell_text(json, "edited_at", rows, row, COLUMN_EDITED);
    json_response_bool(json, "mine", is_mine);
    json_response_bool(json, "can_delete", is_mine || may_delete_all(request, share));
    json_response_close(json, '}');
}

static enum err_code list_comments(struct request *request, struct response *response,
                                   struct err *err)
{
    static const char *const known[] = {"cursor", "limit", NULL};
    struct share share;
    int64_t after, limit;
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = request_query_i64(request, "cursor", 0, INT64_MAX, 0, &after, err);
    if (code)
        return code;
    code = request_query_i64(request, "limit", 1, COMMENT_PAGE, COMMENT_PAGE, &limit, err);
    if (code)
        return code;
    code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, share.tenant_id,
                           "SELECT " COLUMNS " FROM share_comment WHERE share_id = $1::text"
                           " AND n > $2::bigint ORDER BY n LIMIT $3::bigint",
                           request->arena, &rows, err, PG_TEXT(share.id), PG_I64(after),
                           PG_I64(limit));
    if (code)
        return code;
    json_response_auto json;
    json_response_init(&json);
    json_response_open(&json, NULL, '{');
    json_response_open(&json, "comments", '[');
    int count = pg_row_count(rows);
    for (int row = 0; row < count; row++)
        append_comment(request, &share, rows, row, NULL, &json);
    json_response_close(&json, ']');
    if (count == limit)
        json_response_cell_text(&json, "next_cursor", rows, count - 1, COLUMN_N);
    else
        json_response_null(&json, "next_cursor");
    json_response_close(&json, '}');
    response->may_compress = true;
    return json_response_send(&json, request, response, 200, err);
}

/* The share of the path, if the request may comment on it now. */
static enum err_code find_to_write(struct request *request, struct share *share, struct err *err)
{
    const struct principal *who = &request->principal;
    enum err_code code = share_access_find(request, request->path_params[0], share, err);
    if (code)
        return code;
    if (who->kind == PRINCIPAL_ANONYMOUS)
        return err_set(err, ERR_UNAUTHENTICATED, "sign in to write a comment");
    if (who->kind == PRINCIPAL_TOKEN)
        return err_set(err, ERR_FORBIDDEN, "tokens cannot write comments: sign in with a browser");
    if (who->role < ROLE_MEMBER)
        return err_set(
            err, ERR_FORBIDDEN,
            "viewers can only read comments: ask an owner of your team to make you a member");
    char key[24];
    snprintf(key, sizeof(key), "%" PRId64, who->user_id);
    return rate_limiter_take(request->server->limits->rate_limiter, LIMIT_COMMENT_USER,
                             span_text(key), COMMENT_WRITES_PER_MINUTE, COMMENT_WRITES_PER_MINUTE,
                             err);
}

static enum err_code read_text(const struct json_body *body, struct comment *comment,
                               struct err *err)
{
    enum err_code code = json_body_text(body, "text", 1, COMMENT_TEXT_BYTES, &comment->text, err);
    if (code)
        return code;
    code = share_text_check("text", span_text(comment->text), COMMENT_TEXT_BYTES, false, err);
    if (code)
        return code;
    if (span_trim(span_text(comment->text)).size == 0)
        return err_set(err, ERR_INVALID, "text is blank");
    return ERR_NONE;
}

static enum err_code read_pin(const struct json_body *body, struct comment *comment,
                              struct err *err)
{
    uint8_t hash[8];
    enum err_code code = json_body_text(body, "pin_hash", 0, 16, &comment->pin_hash, err);
    if (code)
        return code;
    code = json_body_text(body, "pin_function", 0, COMMENT_FUNCTION_BYTES, &comment->pin_function,
                          err);
    if (code)
        return code;
    if (!comment->pin_hash != !comment->pin_function)
        return err_set(err, ERR_INVALID, "pin_hash and pin_function belong together");
    if (!comment->pin_hash)
        return ERR_NONE;
    bool has_upper = strpbrk(comment->pin_hash, "ABCDEF") != NULL;
    if (has_upper || !digest_parse_hex(span_text(comment->pin_hash), hash, sizeof(hash)))
        return err_set(err, ERR_INVALID, "pin_hash must be 16 digits of 0-9 and a-f");
    return share_text_check("pin_function", span_text(comment->pin_function),
                            COMMENT_FUNCTION_BYTES, true, err);
}

static enum err_code read_comment(struct request *request, struct comment *comment, struct err *err)
{
    static const char *const known[] = {"text", "pin_hash", "pin_function", "view", NULL};
    struct json_body *body;
    enum err_code code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = read_text(body, comment, err);
    if (code)
        return code;
    code = read_pin(body, comment, err);
    if (code)
        return code;
    code = json_body_text(body, "view", 0, COMMENT_VIEW_BYTES, &comment->view, err);
    if (code)
        return code;
    if (comment->view)
        code = viewer_path_check_query("view", span_text(comment->view), err);
    return code;
}

static enum err_code record_change(struct request *request, struct pg_connection *connection,
                                   const struct share *share, const char *action, const char *n,
                                   struct err *err)
{
    const char *target = arena_printf(request->arena, "%s/%s", share->id, n);
    return audit_record_for(connection, request, share->tenant_id, action, target, err);
}

/* Incrementing the share's comment number locks its row, so that comments of one share are inserted
 * one after the other and none is added to a share that is being deleted. */
static enum err_code insert_comment(struct request *request, struct pg_connection *connection,
                                    const struct share *share, const struct comment *comment,
                                    struct pg_result **ret_row, struct err *err)
{
    struct pg_result *number;
    enum err_code code = pg_query_values(
        connection, share->tenant_id,
        "UPDATE share SET last_comment = last_comment + 1 WHERE id = $1::text AND state = 'live'"
        " RETURNING last_comment,"
        " (SELECT count(*) FROM share_comment WHERE share_id = $1::text)",
        request->arena, &number, err, PG_TEXT(share->id));
    if (code)
        return code;
    if (pg_row_count(number) == 0)
        return err_set(err, ERR_GONE,
                       "this share has just been deleted: ask its creator for another link");
    if (pg_get_i64(number, 0, 1) >= COMMENT_MAX_PER_SHARE)
        return err_set(err, ERR_CONFLICT,
                       "a share has at most %d comments: delete some that are no longer needed",
                       COMMENT_MAX_PER_SHARE);
    return pg_query_values(
        connection, share->tenant_id,
        "INSERT INTO share_comment (share_id, n, tenant_id, user_id, author, text, pin_hash,"
        " pin_function, view) VALUES ($1::text, $2::bigint, $3::bigint, $4::bigint,"
        " $9::text, $5::text, $6::text, $7::text, $8::text)"
        " RETURNING " COLUMNS ", " BYTES,
        request->arena, ret_row, err, PG_TEXT(share->id), PG_I64(pg_get_i64(number, 0, 0)),
        PG_I64(share->tenant_id), PG_I64(request->principal.user_id), PG_TEXT(comment->text),
        comment->pin_hash ? PG_TEXT(comment->pin_hash) : PG_NULL,
        comment->pin_hash ? PG_TEXT(comment->pin_function) : PG_NULL,
        comment->view ? PG_TEXT(comment->view) : PG_NULL, PG_TEXT(comment->author));
}

/* The author may belong to another tenant than the share. */
static enum err_code find_author_name(struct request *request, struct pg_connection *connection,
                                      struct comment *comment, struct err *err)
{
    struct pg_result *row;
    enum err_code code = pg_query_values(
        connection, request->principal.tenant_id, "SELECT coalesce(app_user_shown_name($1), '')",
        request->arena, &row, err, PG_I64(request->principal.user_id));
    if (code)
        return code;
    comment->author = pg_get_text(row, 0, 0);
    return ERR_NONE;
}

static enum err_code respond_comment(struct request *request, struct response *response, int status,
                                     const struct share *share, const struct pg_result *row,
                                     struct err *err)
{
    json_response_auto json;
    json_response_init(&json);
    append_comment(request, share, row, 0, NULL, &json);
    return json_response_send(&json, request, response, status, err);
}

static enum err_code create_comment(struct request *request, struct response *response,
                                    struct err *err)
{
    struct share share;
    struct comment comment = {0};
    pg_auto connection = NULL;
    struct pg_result *row;
    enum err_code code = find_to_write(request, &share, err);
    if (code)
        return code;
    code = read_comment(request, &comment, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = find_author_name(request, connection, &comment, err);
    if (code)
        return code;
    code = tenant_begin(connection, share.tenant_id, request->arena, err);
    if (code)
        return code;
    code = insert_comment(request, connection, &share, &comment, &row, err);
    if (code)
        return code;
    code = share_charge_change(request, connection, &share, pg_get_i64(row, 0, COLUMN_BYTES), err);
    if (code)
        return code;
    code = record_change(request, connection, &share, "comment.create",
                         pg_get_text(row, 0, COLUMN_N), err);
    if (code)
        return code;
    code = quota_refuse(request, share.tenant_id, pg_commit(connection, err), err);
    if (code)
        return code;
    response_add(request, response, "location",
                 arena_printf(request->arena, "/api/v1/shares/%s/comments/%s", share.id,
                              pg_get_text(row, 0, COLUMN_N)));
    return respond_comment(request, response, 201, &share, row, err);
}

static enum err_code refuse_unknown_comment(const struct share *share, int64_t n, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "the share %s has no comment %" PRId64 ": the list shows the existing ones",
                   share->id, n);
}

struct stored_comment {
    int64_t author;
    int64_t bytes;
};

/* A comment on a share that was found, locked after the share, as a deletion of the share locks
 * both. Errors: ERR_NOT_FOUND, ERR_GONE. */
static enum err_code lock_comment(struct request *request, struct pg_connection *connection,
                                  const struct share *share, int64_t n,
                                  struct stored_comment *ret_comment, struct err *err)
{
    struct pg_result *row;
    request->has_found = true;
    enum err_code code = share_charge_lock(request, connection, share, err);
    if (code)
        return code;
    code = pg_query_values(connection, share->tenant_id,
                           "SELECT user_id, " BYTES " FROM share_comment WHERE share_id = $1::text"
                           " AND n = $2::bigint FOR UPDATE",
                           request->arena, &row, err, PG_TEXT(share->id), PG_I64(n));
    if (code)
        return code;
    if (pg_row_count(row) == 0)
        return refuse_unknown_comment(share, n, err);
    ret_comment->author = pg_get_i64(row, 0, 0);
    ret_comment->bytes = pg_get_i64(row, 0, 1);
    return ERR_NONE;
}

static enum err_code update_comment(struct request *request, struct pg_connection *connection,
                                    const struct share *share, int64_t n, const char *text,
                                    struct pg_result **ret_row, struct err *err)
{
    struct stored_comment stored;
    enum err_code code = lock_comment(request, connection, share, n, &stored, err);
    if (code)
        return code;
    if (stored.author != request->principal.user_id)
        return err_set(err, ERR_FORBIDDEN, "only the author of a comment may change it");
    code =
        pg_query_values(connection, share->tenant_id,
                        "UPDATE share_comment SET text = $3::text, edited_at = now()"
                        " WHERE share_id = $1::text AND n = $2::bigint"
                        " RETURNING " COLUMNS ", " BYTES,
                        request->arena, ret_row, err, PG_TEXT(share->id), PG_I64(n), PG_TEXT(text));
    if (code)
        return code;
    const int64_t delta = pg_get_i64(*ret_row, 0, COLUMN_BYTES) - stored.bytes;
    return share_charge_change(request, connection, share, delta, err);
}

static enum err_code edit_comment(struct request *request, struct response *response,
                                  struct err *err)
{
    static const char *const known[] = {"text", NULL};
    struct share share;
    struct comment comment = {0};
    struct json_body *body;
    int64_t n;
    pg_auto connection = NULL;
    struct pg_result *row;
    enum err_code code = json_response_path_id(request, 1, &n, err);
    if (code)
        return code;
    code = find_to_write(request, &share, err);
    if (code)
        return code;
    code = json_body_parse(request, known, &body, err);
    if (code)
        return code;
    code = read_text(body, &comment, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, share.tenant_id, request->arena, err);
    if (code)
        return code;
    code = update_comment(request, connection, &share, n, comment.text, &row, err);
    if (code)
        return code;
    code = record_change(request, connection, &share, "comment.edit", pg_get_text(row, 0, COLUMN_N),
                         err);
    if (code)
        return code;
    code = quota_refuse(request, share.tenant_id, pg_commit(connection, err), err);
    if (code)
        return code;
    return respond_comment(request, response, 200, &share, row, err);
}

/* A client that presents a delete token is checked by it alone, as when a share is deleted. */
static enum err_code check_delete(struct request *request, const struct share *share,
                                  int64_t author, struct err *err)
{
    const struct principal *who = &request->principal;
    if (request_field(request, "x-perfolio-delete-token").size)
        return share_access_check_edit(request, share, err);
    if ((who->user_id && who->user_id == author) || may_delete_all(request, share))
        return ERR_NONE;
    if (who->kind == PRINCIPAL_ANONYMOUS)
        return err_set(err, ERR_UNAUTHENTICATED, "sign in to delete a comment");
    return err_set(err, ERR_FORBIDDEN,
                   "only the author of a comment and owners of the share's team may delete it");
}

static enum err_code remove_comment(struct request *request, struct response *response,
                                    struct err *err)
{
    struct share share;
    struct stored_comment stored;
    int64_t n;
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = json_response_path_id(request, 1, &n, err);
    if (code)
        return code;
    code = share_access_find(request, request->path_params[0], &share, err);
    if (code)
        return code;
    code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    code = tenant_begin(connection, share.tenant_id, request->arena, err);
    if (code)
        return code;
    code = lock_comment(request, connection, &share, n, &stored, err);
    if (code)
        return code;
    code = check_delete(request, &share, stored.author, err);
    if (code)
        return code;
    code = pg_query_values(connection, share.tenant_id,
                           "DELETE FROM share_comment WHERE share_id = $1::text"
                           " AND n = $2::bigint",
                           request->arena, &result, err, PG_TEXT(share.id), PG_I64(n));
    if (code)
        return code;
    code = share_charge_change(request, connection, &share, -stored.bytes, err);
    if (code)
        return code;
    code = record_change(request, connection, &share, "comment.delete",
                         arena_printf(request->arena, "%" PRId64, n), err);
    if (code)
        return code;
    code = pg_commit(connection, err);
    if (code)
        return code;
    return json_response_nothing(request, response);
}

#define COMMENTS "/api/v1/shares/{id}/comments"
enum { COMMENT_BODY_BYTES = 128 << 10 }; /* JSON may escape each byte */

static const struct route routes[] = {
    {HTTP_GET, COMMENTS, ACCESS_PUBLIC, 0, ROUTE_LIMIT_404 | ROUTE_CORS, 0, list_comments},
    {HTTP_POST, COMMENTS, ACCESS_PUBLIC, 0, ROUTE_LIMIT_404, COMMENT_BODY_BYTES, create_comment},
    {HTTP_PATCH, COMMENTS "/{n}", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404, COMMENT_BODY_BYTES,
     edit_comment},
    {HTTP_DELETE, COMMENTS "/{n}", ACCESS_PUBLIC, 0, ROUTE_LIMIT_404 | ROUTE_SECURITY, 0,
     remove_comment},
};

const struct route_table comment_routes = {routes, sizeof(routes) / sizeof(*routes)};

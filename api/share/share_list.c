#include "api/share/share_list.h"

#include "api/core/server.h"
#include "api/http/request_limits.h"
#include "api/share/share_access.h"
#include "api/share/share_row.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/io/pg.h"

#include <inttypes.h>

enum {
    SEARCH_MS = 2000,
    /* A page ends with the share whose texts reach this size. */
    PAGE_BYTES = 8 << 20,
    COLUMN_ID = SHARE_ROW_COLUMN_COUNT,
    COLUMN_CREATED_US,
    COLUMN_FOUND, /* shares from this page on, at most one more than its limit */
};

struct list_query {
    const char *pattern; /* for the operator ~*; "" for all */
    int64_t before_us;   /* created_at and id of the last row shown; 0 for the first page */
    struct span before_id;
    int64_t limit;
};

/* "<microseconds>.<id>" */
static enum err_code parse_cursor(struct span cursor, struct list_query *query, struct err *err)
{
    struct span time;
    if (!span_split(cursor, '.', &time, &query->before_id) ||
        !span_parse_i64(time, &query->before_us) || query->before_us <= 0 ||
        !digest_is_id(query->before_id))
        return err_set(
            err, ERR_INVALID,
            "cursor is not from this list: use next_cursor of the previous page, or none to begin");
    return ERR_NONE;
}

/*
 * Finds the words anywhere; no character of them has a special meaning after "***=". PostgreSQL
 * looks for such a regular expression with a DFA, in time linear in the text. LIKE and strpos()
 * compare the words at each place of the text from the start: 200 letters "a" and a "b" take 40
 * times as long in a text of the letter "a".
 */
static enum err_code parse_search(struct request *request, struct span words,
                                  struct list_query *query, struct err *err)
{
    words = span_trim(words);
    if (words.size == 0)
        return ERR_NONE;
    if (words.size > 200 || !span_is_utf8(words) || memchr(words.data, 0, words.size))
        return err_set(err, ERR_INVALID, "q must be text of at most 200 bytes");
    query->pattern = arena_printf(request->arena, "***=%.*s", SPAN_PRINT(words));
    return ERR_NONE;
}

static enum err_code parse_query(struct request *request, struct list_query *query, struct err *err)
{
    static const char *const known[] = {"q", "cursor", "limit", NULL};
    struct span text;
    *query = (struct list_query){.pattern = "", .before_id = SPAN_LITERAL("")};
    enum err_code code = request_check_query(request, known, err);
    if (code)
        return code;
    code = request_query_i64(request, "limit", 1, SHARE_LIST_MAX, SHARE_LIST_DEFAULT, &query->limit,
                             err);
    if (code)
        return code;
    if (request_query(request, "cursor", &text))
        code = parse_cursor(text, query, err);
    if (code)
        return code;
    if (request_query(request, "q", &text))
        code = parse_search(request, text, query, err);
    return code;
}

/* Finds one row more than requested, to know whether there is a next page. The size of a text is
 * known without reading it. */
static enum err_code query_rows(struct request *request, struct pg_connection *connection,
                                const struct list_query *query, struct pg_result **ret_result,
                                struct err *err)
{
    return pg_query_values(
        connection, request->principal.tenant_id,
        "SELECT " SHARE_ROW_LIST_COLUMNS
        ", s.id, (extract(epoch FROM s.created_at) * 1000000)::bigint, s.found FROM"
        " (SELECT s.*, count(*) OVER () AS found, sum(octet_length(s.description)"
        " + octet_length(s.list_summary::text)) OVER (ORDER BY s.created_at DESC, s.id DESC"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before FROM"
        " (SELECT * FROM share s WHERE s.tenant_id = $1::bigint AND s.state = 'live'"
        " AND (s.expires_at IS NULL OR s.expires_at > now())"
        " AND ($2::text = '' OR s.title ~* $2::text OR s.description ~* $2::text"
        " OR s.filename ~* $2::text OR s.labels::text ~* $2::text)"
        " AND ($3::bigint = 0 OR (s.created_at, s.id) <"
        " ('epoch'::timestamptz + $3::bigint * interval '1 microsecond', $4::text))"
        " ORDER BY s.created_at DESC, s.id DESC LIMIT $5::bigint) s) s"
        " WHERE coalesce(s.bytes_before, 0) < $6::bigint"
        " ORDER BY s.created_at DESC, s.id DESC",
        request->arena, ret_result, err, PG_I64(request->principal.tenant_id),
        PG_TEXT(query->pattern), PG_I64(query->before_us), PG_SPAN(query->before_id),
        PG_I64(query->limit + 1), PG_I64(PAGE_BYTES));
}

/* A search reads the texts of all shares, so a team has a quarter of the workers for its
 * searches. */
static enum err_code take_search_slot(struct request *request, struct err *err)
{
    const char *key = request->concurrency_slot.key;
    if (!key)
        key = arena_printf(request->arena, "searches of %" PRId64, request->principal.tenant_id);
    return request_take_slot(request, request->server->limits->reports, key,
                             "several searches of the team are running, and others wait; try again "
                             "in a few seconds",
                             err);
}

static enum err_code fail_slow_search(struct err *err)
{
    err_set(err, ERR_BUSY,
            "the search took longer than %d s, because the team has many or long descriptions: "
            "search for words of newer shares, or list the shares without q",
            SEARCH_MS / 1000);
    err->retry_after_s = SEARCH_MS / 1000;
    return ERR_BUSY;
}

static enum err_code select_rows(struct request *request, const struct list_query *query,
                                 struct pg_result **ret_result, struct err *err)
{
    pg_auto connection = NULL;
    const bool is_search = *query->pattern;
    enum err_code code = is_search ? take_search_slot(request, err) : ERR_NONE;
    if (!code)
        code = pg_take(request->server->database, &connection, err);
    if (code)
        return code;
    if (is_search)
        pg_limit_until(connection, clock_monotonic_ns() + SEARCH_MS * CLOCK_NS_PER_MS);
    code = query_rows(request, connection, query, ret_result, err);
    return code == ERR_BUSY && is_search ? fail_slow_search(err) : code;
}

enum err_code share_list_handle(struct request *request, struct response *response, struct err *err)
{
    struct list_query query;
    struct pg_result *result;
    enum err_code code = parse_query(request, &query, err);
    if (code)
        return code;
    code = select_rows(request, &query, &result, err);
    if (code)
        return code;
    int row_count = pg_row_count(result);
    int shown_count = row_count > query.limit ? (int)query.limit : row_count;
    const bool has_more = row_count && pg_get_i64(result, 0, COLUMN_FOUND) > shown_count;
    buf_auto json;
    buf_init(&json, 64 << 20);
    buf_append_text(&json, "{\"shares\":[");
    for (int row = 0; row < shown_count; row++) {
        struct share share;
        const char *id = pg_get_text(result, row, COLUMN_ID);
        code = share_row_read(result, row, id, &share, err);
        if (code)
            return code;
        buf_append_text(&json, row ? "," : "");
        share_append_json(request, &share, share_access_is_editor(request, &share), &json);
    }
    buf_append_text(&json, "],\"next_cursor\":");
    if (has_more)
        buf_printf(&json, "\"%" PRId64 ".%s\"}",
                   pg_get_i64(result, shown_count - 1, COLUMN_CREATED_US),
                   pg_get_text(result, shown_count - 1, COLUMN_ID));
    else
        buf_append_text(&json, "null}");
    response->may_compress = true;
    response_add(request, response, "cache-control", "private, no-store");
    return response_buf(request, response, 200, "application/json", &json, err);
}

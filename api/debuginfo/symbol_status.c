#include "api/debuginfo/symbol_status.h"

#include "api/core/server.h"
#include "api/debuginfo/build_id.h"
#include "api/debuginfo/symbol_tables.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <inttypes.h>

enum { JSON_MAX_BYTES = 8 << 20 };

/* is_unused: this process has not used the present table yet, or cannot use it now. It is then not
 * reported as ready, because the client would take a response without its names for complete. */
static void fill_status(const struct pg_result *rows, int row, bool is_unused,
                        struct symbol_status *state)
{
    const bool is_ready = pg_get_bool(rows, row, 1), is_working = pg_get_bool(rows, row, 2);
    state->state = is_ready && !is_unused   ? SYMBOL_STATUS_READY
                   : is_ready || is_working ? SYMBOL_STATUS_PENDING
                                            : SYMBOL_STATUS_MISSING;
    if (state->state != SYMBOL_STATUS_MISSING)
        return;
    if (*pg_get_text(rows, row, 3))
        state->reason = pg_get_text(rows, row, 3);
    state->next_retry_ms = pg_get_i64(rows, row, 4);
}

static enum err_code query_status(struct server *server, int64_t tenant_id, const struct buf *json,
                                  struct arena *arena, struct pg_result **ret_rows, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->database, &connection, err);
    if (code)
        return code;
    return pg_query_values(
        connection, tenant_id,
        /* A table of names is usable, but a waiting client should also get the lines, which are
         * being read. */
        "SELECT a.i, t.is_there AND (t.is_good OR NOT j.is_working AND NOT t.is_lacking),"
        " j.is_working OR coalesce(n.next_try_at <= now() AND n.reason = '', false),"
        /* The reason: the data that the table lacks and, if servers were contacted, the result. */
        " CASE WHEN t.is_lacking THEN concat_ws('; ', t.lacks,"
        "   CASE WHEN n.next_try_at IS NOT NULL THEN nullif(n.reason, '') END)"
        "  WHEN EXISTS (SELECT FROM symbol_table d WHERE d.tenant_id = $1 AND d.build_id = a.b"
        "   AND object_is_damaged(d.object_key)) THEN"
        "   'its symbol table is damaged on the server: upload it once more'"
        "  ELSE coalesce((SELECT f.reason FROM debug_file f WHERE f.tenant_id = $1"
        "   AND f.build_id = a.b AND f.state = 'failed' ORDER BY f.id DESC LIMIT 1), n.reason, '')"
        "  END,"
        " unix_ms(n.next_try_at),"
        " (SELECT generation + coalesce((SELECT generation FROM symbol_generation"
        "  WHERE tenant_id = $1), 0) FROM symbol_generation_public)"
        " FROM json_to_recordset($2::json) AS a (i integer, b text)"
        " LEFT JOIN symbol_need n ON n.tenant_id = $1 AND n.build_id = a.b"
        " CROSS JOIN LATERAL (SELECT count(*) > 0 AS is_there,"
        "  coalesce(bool_or(has_much AND NOT lacks_shared), false) AS is_good,"
        "  bool_or(lacks_shared) AND NOT bool_or(has_much AND NOT lacks_shared) AS is_lacking,"
        "  coalesce(nullif(max(problem) FILTER (WHERE lacks_shared), ''),"
        "   'names are in a shared file of dwz that was not given') AS lacks FROM"
        "  (SELECT quality & $3::bigint::integer <> 0 AS has_much,"
        "    quality & $4::bigint::integer <> 0 AS lacks_shared, problem FROM"
        "    (SELECT quality, problem FROM symbol_table WHERE tenant_id = $1 AND build_id = a.b"
        "      AND NOT object_is_damaged(object_key)"
        "     UNION ALL SELECT quality, problem FROM symbol_table_public WHERE build_id = a.b"
        "      AND NOT object_is_damaged(object_key))"
        "    AS both_kinds) AS tables) AS t"
        " CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM symbol_job WHERE tenant_id = $1"
        "  AND build_id = a.b) AS is_working) AS j",
        arena, ret_rows, err, PG_I64(tenant_id), PG_SPAN(buf_span(json)),
        PG_I64(SYMBOL_TABLES_GOOD), PG_I64(SYMBOL_LACKS_SHARED));
}

static const char *copy_text(struct arena *arena, struct span text)
{
    return arena_strndup(arena, text.data, text.size);
}

enum err_code symbol_status_get(struct server *server, int64_t tenant_id,
                                const struct build_id_binary *binaries, uint32_t count,
                                struct arena *arena, const struct symbol_status **ret_states,
                                struct err *err)
{
    struct symbol_status *states = arena_new(arena, struct symbol_status, count);
    struct pg_result *rows;
    char id[BUILD_ID_BYTES];
    uint32_t queried = 0;
    buf_auto json;
    buf_init(&json, JSON_MAX_BYTES);
    buf_append_byte(&json, '[');
    for (uint32_t i = 0; i < count; i++) {
        const bool has_id = build_id_normalize(binaries[i].build_id, id);
        states[i] =
            (struct symbol_status){.state = SYMBOL_STATUS_MISSING,
                                   .build_id = has_id ? arena_strdup(arena, id) : "",
                                   .file = copy_text(arena, binaries[i].file),
                                   .reason = has_id ? "its debug information was not uploaded"
                                                    : "the profile does not contain its build id"};
        if (has_id && queried < SYMBOL_STATUS_MAX)
            buf_printf(&json, "%s{\"i\":%u,\"b\":\"%s\"}", queried++ ? "," : "", i, id);
        else if (has_id)
            states[i].reason = "not checked: the profile has too many binaries without names";
    }
    buf_append_byte(&json, ']');
    enum err_code code = queried ? query_status(server, tenant_id, &json, arena, &rows, err) : 0;
    const bool is_behind =
        !code && queried && pg_row_count(rows) &&
        symbol_tables_learn_generation(server, tenant_id, (uint64_t)pg_get_i64(rows, 0, 5));
    if (code)
        return code;
    for (int row = 0; queried && row < pg_row_count(rows); row++) {
        struct symbol_status *state = &states[pg_get_i64(rows, row, 0)];
        fill_status(rows, row,
                    is_behind || symbol_tables_is_refused(server, tenant_id, state->build_id),
                    state);
    }
    *ret_states = states;
    return ERR_NONE;
}

static void write_ids(const struct symbol_status *state, struct buf *json)
{
    buf_append_text(json, "{\"build_id\":");
    buf_append_json(json, span_text(state->build_id));
    buf_append_text(json, ",\"file\":");
    buf_append_json(json, span_text(state->file));
}

static void write_missing(const struct symbol_status *state, struct buf *json)
{
    char text[CLOCK_TEXT_BYTES];
    write_ids(state, json);
    buf_append_text(json, ",\"reason\":");
    buf_append_json(json, span_text(state->reason));
    if (state->next_retry_ms)
        buf_printf(json, ",\"next_retry\":\"%s\"}",
                   clock_format(state->next_retry_ms * CLOCK_NS_PER_MS, text));
    else
        buf_append_text(json, ",\"next_retry\":null}");
}

void symbol_status_write(const struct symbol_status *states, uint32_t count, uint32_t unlisted,
                         struct buf *json)
{
    uint32_t pending = 0, missing = 0;
    buf_append_text(json, "{\"pending\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (states[i].state != SYMBOL_STATUS_PENDING)
            continue;
        buf_append_text(json, pending++ ? "," : "");
        write_ids(&states[i], json);
        buf_append_byte(json, '}');
    }
    buf_append_text(json, "],\"missing\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (states[i].state != SYMBOL_STATUS_MISSING)
            continue;
        buf_append_text(json, missing++ ? "," : "");
        write_missing(&states[i], json);
    }
    buf_append_byte(json, ']');
    if (unlisted)
        buf_printf(json, ",\"unlisted\":%" PRIu32, unlisted);
    buf_printf(json, ",\"complete\":%s}", pending + missing + unlisted ? "false" : "true");
}

#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

/* Limits of one time slice: more writers cannot be searched within it. */
enum { WRITERS_AT_ONCE = 256, LIST_MAX_BYTES = 64 << 20 };

/* An advisory lock of PostgreSQL. It belongs to the session, so it ends with the server. */
#define SEARCH_LOCK INT64_C(0x5046534F) /* "PFSO" */

/* The time between two searches of a writer doubles, so a writer is searched about twelve times in
 * the day after its end. The last search begins when the day is over. */
#define IS_DUE                                                                                     \
    "ended_at IS NOT NULL AND (swept_at IS NULL OR (swept_at < ended_at + interval '1 day' AND "   \
    "now() >= least(ended_at + interval '1 day', "                                                 \
    "               swept_at + greatest(swept_at - ended_at, interval '150 s'))))"

static enum err_code lock_search(struct pg_connection *connection, struct arena *arena,
                                 bool *ret_is_locked, struct err *err)
{
    struct pg_result *result;
    enum err_code code =
        pg_query_values(connection, PG_NO_TENANT, "SELECT pg_try_advisory_lock($1)", arena, &result,
                        err, PG_I64(SEARCH_LOCK));
    if (!code)
        *ret_is_locked = pg_get_bool(result, 0, 0);
    return code;
}

static enum err_code list_due(struct catalogue_search *search, struct arena *arena,
                              int64_t after_writer_id, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        search->connection, PG_NO_TENANT,
        "SELECT id, now()::text FROM store_writer WHERE " IS_DUE " ORDER BY id <= $1, id LIMIT $2",
        arena, &result, err, PG_I64(after_writer_id), PG_I64(WRITERS_AT_ONCE));
    if (code || pg_row_count(result) == 0)
        return code;
    int64_t *ids = arena_new(arena, int64_t, (size_t)pg_row_count(result));
    for (int row = 0; row < pg_row_count(result); row++)
        ids[row] = pg_get_i64(result, row, 0);
    search->writer_ids = ids;
    search->count = (uint32_t)pg_row_count(result);
    search->begun_at = pg_get_text(result, 0, 1);
    return ERR_NONE;
}

enum err_code catalogue_begin_search(struct pg_pool *jobs, struct arena *arena,
                                     int64_t after_writer_id, struct catalogue_search *ret_search,
                                     struct err *err)
{
    *ret_search = (struct catalogue_search){0};
    enum err_code code = pg_take(jobs, &ret_search->connection, err);
    if (!code)
        code = lock_search(ret_search->connection, arena, &ret_search->is_locked, err);
    if (!code && ret_search->is_locked)
        code = list_due(ret_search, arena, after_writer_id, err);
    return code;
}

enum err_code catalogue_note_search(struct catalogue_search *search, struct arena *arena,
                                    int64_t writer_id, struct err *err)
{
    struct pg_result *result;
    return pg_query_values(search->connection, PG_NO_TENANT,
                           "UPDATE store_writer SET swept_at = $2::timestamptz WHERE id = $1",
                           arena, &result, err, PG_I64(writer_id), PG_TEXT(search->begun_at));
}

enum err_code catalogue_end_search(struct catalogue_search *search, struct arena *arena,
                                   struct err *err)
{
    struct pg_result *result;
    enum err_code code = ERR_NONE;
    if (search->is_locked)
        code = pg_query_values(search->connection, PG_NO_TENANT, "SELECT pg_advisory_unlock($1)",
                               arena, &result, err, PG_I64(SEARCH_LOCK));
    pg_give(search->connection);
    *search = (struct catalogue_search){0};
    return code;
}

/* ---- objects that no row names ---- */

static const char *key_list(struct arena *arena, const char *const *keys, uint32_t count)
{
    buf_auto list; /* keys contain no character that needs quoting */
    buf_init(&list, LIST_MAX_BYTES);
    buf_append_byte(&list, '{');
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&list, "%s%s", i ? "," : "", keys[i]);
    buf_append_byte(&list, '}');
    return arena_strndup(arena, list.data, list.size);
}

static enum err_code discard_unknown(struct pg_connection *connection, struct arena *arena,
                                     const char *const *keys, uint32_t count, struct err *err)
{
    struct pg_result *result;
    return pg_query_values(
        connection, PG_NO_TENANT,
        "INSERT INTO object_trash (object_key) SELECT k FROM unnest($1::text[]) AS k "
        "WHERE NOT EXISTS (SELECT FROM segment WHERE object_key = k) "
        "AND NOT EXISTS (SELECT FROM block WHERE object_key = k) ON CONFLICT DO NOTHING",
        arena, &result, err, PG_TEXT(key_list(arena, keys, count)));
}

enum err_code catalogue_search_discard(struct catalogue_search *search, struct arena *arena,
                                       const char *const *keys, uint32_t count, struct err *err)
{
    return count ? discard_unknown(search->connection, arena, keys, count, err) : ERR_NONE;
}

enum err_code catalogue_discard_unknown(struct pg_pool *jobs, struct arena *arena,
                                        const char *const *keys, uint32_t count, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(jobs, &connection, err);
    return code ? code : discard_unknown(connection, arena, keys, count, err);
}

#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

enum { LIST_MAX_BYTES = 64 << 20 }; /* of ids or keys as text */

/* A query reads the catalogue shortly after its time limit began to count; the extra minute is for
 * clocks and for limits that servers cache. */
#define GRACE_SQL                                                                                  \
    "greatest($1, $2 + 60, (SELECT max((limits->>'query_time_s')::bigint) + 60 FROM tenant)) "     \
    "* interval '1 s'"

enum err_code catalogue_tidy(struct pg_pool *jobs, int64_t writer_id, int64_t query_time_s,
                             struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = catalogue_renew_writer(connection, arena, writer_id, err);
    if (code && code != ERR_CONFLICT) /* a server without a writer tidies, too */
        return code;
    code = pg_query(connection, PG_NO_TENANT,
                    CATALOGUE_END_WRITERS("seen_at < now() - interval '1 minute'"), NULL, 0, arena,
                    &result, err);
    if (code)
        return code;
    code = pg_query(connection, PG_NO_TENANT,
                    "UPDATE segment s SET swapped_at = now() WHERE s.swapped_at IS NULL AND "
                    "NOT EXISTS (SELECT FROM segment_tenant t WHERE t.segment_id = s.id "
                    "AND NOT t.is_swapped)",
                    NULL, 0, arena, &result, err);
    /* SKIP LOCKED: waiting here while holding other rows could deadlock; the next run deletes what
     * was skipped. */
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "DELETE FROM segment WHERE id IN (SELECT id FROM segment "
                           "WHERE swapped_at < now() - " GRACE_SQL
                           " ORDER BY id FOR UPDATE SKIP LOCKED)",
                           arena, &result, err, PG_I64(CATALOGUE_GRACE_S), PG_I64(query_time_s));
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "DELETE FROM block WHERE id IN (SELECT id FROM block "
                           "WHERE swapped_at < now() - " GRACE_SQL
                           " ORDER BY id FOR UPDATE SKIP LOCKED)",
                           arena, &result, err, PG_I64(CATALOGUE_GRACE_S), PG_I64(query_time_s));
    if (code)
        return code;
    code = pg_query(connection, PG_NO_TENANT,
                    "DELETE FROM ingest_batch WHERE received_at < now() - interval '1 day'", NULL,
                    0, arena, &result, err);
    /* Clocks of servers differ, so the previous day is kept too. */
    if (code)
        return code;
    code = pg_query(connection, PG_NO_TENANT,
                    "DELETE FROM ingest_series "
                    "WHERE day < (now() AT TIME ZONE 'UTC')::date - 1",
                    NULL, 0, arena, &result, err);
    if (code)
        return code;
    return catalogue_finish_deletions(connection, arena, err);
}

enum err_code catalogue_list_ended(struct pg_pool *jobs, struct arena *arena,
                                   const int64_t **ret_writer_ids, uint32_t *ret_count,
                                   struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (!code)
        code = pg_query(connection, PG_NO_TENANT,
                        "SELECT id FROM store_writer WHERE ended_at IS NOT NULL AND "
                        "(swept_at IS NULL OR swept_at < ended_at + interval '1 day') "
                        "ORDER BY id",
                        NULL, 0, arena, &result, err);
    if (code)
        return code;
    int64_t *ids = arena_new(arena, int64_t, (size_t)pg_row_count(result));
    for (int row = 0; row < pg_row_count(result); row++)
        ids[row] = pg_get_i64(result, row, 0);
    *ret_writer_ids = ids;
    *ret_count = (uint32_t)pg_row_count(result);
    return ERR_NONE;
}

enum err_code catalogue_mark_swept(struct pg_pool *jobs, struct arena *arena,
                                   const int64_t *writer_ids, uint32_t count, struct err *err)
{
    buf_auto list;
    buf_init(&list, LIST_MAX_BYTES);
    for (uint32_t i = 0; i < count; i++)
        catalogue_append_number(&list, writer_ids[i]);
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    return pg_query_values(connection, PG_NO_TENANT,
                           "UPDATE store_writer SET swept_at = now() "
                           "WHERE id = ANY ($1::bigint[])",
                           arena, &result, err, PG_TEXT(catalogue_end_list(arena, &list)));
}

enum err_code catalogue_discard_unknown(struct pg_pool *jobs, struct arena *arena,
                                        const char *const *keys, uint32_t count, struct err *err)
{
    buf_auto list; /* keys contain no character that needs quoting */
    buf_init(&list, LIST_MAX_BYTES);
    buf_append_byte(&list, '{');
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&list, "%s%s", i ? "," : "", keys[i]);
    buf_append_byte(&list, '}');
    buf_append_byte(&list, 0);
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    return pg_query_values(
        connection, PG_NO_TENANT,
        "INSERT INTO object_trash (object_key) SELECT k FROM unnest($1::text[]) AS k "
        "WHERE NOT EXISTS (SELECT FROM segment WHERE object_key = k) "
        "AND NOT EXISTS (SELECT FROM block WHERE object_key = k) ON CONFLICT DO NOTHING",
        arena, &result, err, PG_TEXT((const char *)list.data));
}

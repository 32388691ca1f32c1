#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

/* A query reads the catalogue shortly after its time limit began to count; the extra minute is for
 * clocks and for limits that servers cache. */
#define GRACE_SQL                                                                                  \
    "greatest($1, $2 + 60, (SELECT max((limits->>'query_time_s')::bigint) + 60 FROM tenant)) "     \
    "* interval '1 s'"

/*
 * Forgets the oldest ids of the team that has most of them while there are more than max_count in
 * the table, so that one team cannot fill the database with ids: each takes some 190 bytes for a
 * day. The statistics of PostgreSQL have the number of rows. The team is found in a sample of the
 * pages. Its oldest rows are found by the index of times, in which rows of the team with most ids
 * come soon.
 */
static enum err_code limit_batch_ids(struct pg_connection *connection, struct arena *arena,
                                     int64_t max_count, struct err *err)
{
    enum { DELETE_COUNT = 100000, SAMPLE_COUNT = 1000000 };
    struct pg_result *result;
    if (!max_count)
        return ERR_NONE;
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH rows AS (SELECT pg_stat_get_live_tuples('ingest_batch'::regclass) AS n),"
        " most AS (SELECT tenant_id FROM ingest_batch"
        "  TABLESAMPLE SYSTEM ((SELECT least(100, 100.0 * $2 / greatest(n, 1)) FROM rows))"
        "  WHERE (SELECT n > $1 FROM rows) GROUP BY tenant_id ORDER BY count(*) DESC LIMIT 1)"
        " DELETE FROM ingest_batch WHERE ctid = ANY (ARRAY(SELECT b.ctid FROM ingest_batch b"
        "  WHERE b.tenant_id = (SELECT tenant_id FROM most) ORDER BY b.received_at"
        "  LIMIT (SELECT least($3, greatest(0, n - $1)) FROM rows)))",
        arena, &result, err, PG_I64(max_count), PG_I64(SAMPLE_COUNT), PG_I64(DELETE_COUNT));
}

enum err_code catalogue_tidy(struct pg_pool *jobs, int64_t writer_id, int64_t query_time_s,
                             int64_t max_batch_ids, struct err *err)
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
    if (code)
        return code;
    /* SKIP LOCKED: waiting here while holding other rows could deadlock; the next run deletes the
     * skipped rows. */
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
    code =
        pg_query_values(connection, PG_NO_TENANT,
                        "DELETE FROM ingest_batch WHERE received_at < now() - $1 * interval '1 s'",
                        arena, &result, err, PG_I64(CATALOGUE_BATCH_ID_S));
    if (code)
        return code;
    code = limit_batch_ids(connection, arena, max_batch_ids, err);
    if (code)
        return code;
    /* Clocks of servers differ, so the previous day is kept too. */
    code = pg_query(connection, PG_NO_TENANT,
                    "DELETE FROM ingest_series "
                    "WHERE day < (now() AT TIME ZONE 'UTC')::date - 1",
                    NULL, 0, arena, &result, err);
    if (code)
        return code;
    return catalogue_finish_deletions(connection, arena, err);
}

#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

enum err_code catalogue_load_rules(struct pg_connection *connection, struct arena *arena,
                                   int64_t pg_tenant, int64_t tenant_id, int64_t retention_s,
                                   struct catalogue_rules *ret_rules, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, pg_tenant,
        "SELECT coalesce(t.profile_retention_s, $2), (extract(epoch FROM now()) * 1e9)::bigint,"
        " r.selector, r.keep_s, coalesce(r.totals_s, 0) FROM tenant t LEFT JOIN retention_rule r "
        "ON r.tenant_id = t.id"
        " WHERE t.id = $1 ORDER BY r.position, r.id",
        arena, &result, err, PG_I64(tenant_id), PG_I64(retention_s));
    *ret_rules = (struct catalogue_rules){0};
    if (code || pg_row_count(result) == 0)
        return code;
    const int rows = pg_row_count(result);
    struct catalogue_rule *rules = arena_new(arena, struct catalogue_rule, (size_t)rows);
    *ret_rules = (struct catalogue_rules){
        .rules = rules, .default_s = pg_get_i64(result, 0, 0), .now_ns = pg_get_i64(result, 0, 1)};
    for (int row = 0; row < rows && !pg_is_null(result, row, 2); row++)
        rules[ret_rules->count++] = (struct catalogue_rule){.selector = pg_get_text(result, row, 2),
                                                            .keep_s = pg_get_i64(result, row, 3),
                                                            .totals_s = pg_get_i64(result, row, 4)};
    return ERR_NONE;
}

/* Tenants without rules keep everything for one time, so their blocks expire as a whole
 * (catalogue_expire). A block is first claimed when all of it is older than the shortest rule. */
enum err_code catalogue_claim_expiry(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, int64_t retention_s,
                                     struct pg_result **ret_result, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH kept AS MATERIALIZED ("
        "  SELECT t.id, retention_key(t.id, coalesce(t.profile_retention_s, $3)) AS key,"
        "    (extract(epoch FROM now()) - least(r.shortest_s,"
        "      nullif(coalesce(t.profile_retention_s, $3), 0))) * 1e9 AS cutoff_ns"
        "  FROM (SELECT tenant_id, min(nullif(keep_s, 0)) AS shortest_s FROM retention_rule"
        "    GROUP BY tenant_id) r JOIN tenant t ON t.id = r.tenant_id) "
        "UPDATE block b SET leased_by = $1, leased_until = now() + $2 * interval '1 s'"
        "  FROM (SELECT o.id, k.key FROM kept k JOIN block o ON o.tenant_id = k.id"
        "    WHERE o.swapped_at IS NULL AND NOT o.is_broken AND o.end_ns < k.cutoff_ns"
        "    AND (o.retention_key <> k.key"
        "      OR o.retention_due_ns < extract(epoch FROM now()) * 1e9)"
        "    AND (o.leased_until IS NULL OR o.leased_until < now())"
        "    ORDER BY o.id LIMIT 1 FOR UPDATE OF o SKIP LOCKED) c WHERE b.id = c.id "
        "RETURNING b.id, b.tenant_id, " CATALOGUE_BLOCK_PLACE ", c.key",
        arena, ret_result, err, PG_I64(writer_id), PG_I64(CATALOGUE_LEASE_S), PG_I64(retention_s));
}

enum err_code catalogue_postpone(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                 const struct catalogue_claim *claim, int64_t due_ns,
                                 struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, PG_NO_TENANT,
        "UPDATE block SET retention_key = $1, leased_by = NULL, leased_until = NULL,"
        " retention_due_ns = nullif($2::bigint, 9223372036854775807)"
        " WHERE id = $3 AND leased_by = $4 AND swapped_at IS NULL",
        arena, &result, err, PG_I64(claim->retention_key), PG_I64(due_ns), PG_I64(claim->ids[0]),
        PG_I64(writer_id));
    if (code)
        return code;
    return catalogue_check_count(pg_affected(result), 1, err);
}

#define KEPT                                                                                       \
    "WITH kept AS MATERIALIZED (SELECT id, (extract(epoch FROM now())"                             \
    " - nullif(retention_longest_s(id, coalesce(profile_retention_s, $1)), 0)) * 1e9 AS cutoff_ns" \
    " FROM tenant), "

/* SKIP LOCKED: rows that a deletion or another server holds are left to the next run, so that no
 * deadlock can occur. */
enum err_code catalogue_expire(struct pg_pool *jobs, int64_t retention_s, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           KEPT "due AS (SELECT b.id FROM block b JOIN kept k"
                                " ON k.id = b.tenant_id WHERE b.swapped_at IS NULL"
                                " AND b.end_ns < k.cutoff_ns FOR UPDATE OF b SKIP LOCKED) "
                                "UPDATE block b SET swapped_at = now() FROM due"
                                " WHERE b.id = due.id",
                           arena, &result, err, PG_I64(retention_s));
    if (code)
        return code;
    return pg_query_values(connection, PG_NO_TENANT,
                           KEPT
                           "due AS (SELECT s.segment_id, s.tenant_id FROM segment_tenant s"
                           " JOIN kept k ON k.id = s.tenant_id WHERE NOT s.is_swapped"
                           " AND s.end_ns < k.cutoff_ns FOR UPDATE OF s SKIP LOCKED) "
                           "UPDATE segment_tenant s SET is_swapped = true FROM due"
                           " WHERE s.segment_id = due.segment_id AND s.tenant_id = due.tenant_id",
                           arena, &result, err, PG_I64(retention_s));
}

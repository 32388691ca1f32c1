#include "store/catalogue/catalogue.h"

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

/* Checks that this writer and the tenant exist, and locks both until the transaction ends. */
static enum err_code lock_writer(struct pg_connection *connection, struct arena *arena,
                                 int64_t writer_id, int64_t tenant_id, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT, "SELECT id FROM tenant WHERE id = $1 FOR KEY SHARE SKIP LOCKED",
        arena, &result, err, PG_I64(tenant_id));
    if (code)
        return code;
    code = catalogue_check_count(pg_row_count(result), 1, err);
    if (code)
        return code;
    return catalogue_renew_writer(connection, arena, writer_id, err);
}

/* Rows are locked in order of id, as deletions lock them, so that the two cannot deadlock. */
static enum err_code mark_inputs_swapped(struct pg_connection *connection, struct arena *arena,
                                         int64_t writer_id, const struct catalogue_claim *claim,
                                         struct err *err)
{
    struct pg_result *result;
    const char *sql =
        claim->level
            ? "UPDATE block b SET swapped_at = now(), leased_by = NULL FROM (SELECT id FROM block"
              "  WHERE tenant_id = $1 AND id = ANY ($2::bigint[]) ORDER BY id FOR UPDATE) o"
              " WHERE b.id = o.id AND b.leased_by = $3 AND b.swapped_at IS NULL"
            : "UPDATE segment_tenant t SET is_swapped = true, leased_by = NULL"
              " FROM (SELECT segment_id FROM segment_tenant WHERE tenant_id = $1"
              "  AND segment_id = ANY ($2::bigint[]) ORDER BY segment_id FOR UPDATE) o"
              " WHERE t.tenant_id = $1 AND t.segment_id = o.segment_id AND t.leased_by = $3"
              " AND NOT t.is_swapped";
    const struct pg_value values[] = {PG_I64(claim->tenant_id),
                                      PG_TEXT(catalogue_id_list(arena, claim)), PG_I64(writer_id)};
    enum err_code code = pg_query(connection, PG_NO_TENANT, sql, values, 3, arena, &result, err);
    return code ? code : catalogue_check_count(pg_affected(result), claim->id_count, err);
}

static const char *write_deletions(struct arena *arena, const struct deletion_set_ids *deletions)
{
    buf_auto list;
    buf_init(&list, (size_t)deletions->count * 24 + 16);
    for (uint32_t i = 0; i < deletions->count; i++)
        catalogue_append_number(&list, deletions->ids[i]);
    return catalogue_end_list(arena, &list);
}

static enum err_code insert_block(struct pg_connection *connection, struct arena *arena,
                                  int64_t writer_id, int64_t tenant_id, uint32_t level,
                                  const struct catalogue_block *block, struct err *err)
{
    return pg_queue_values(
        connection, PG_NO_TENANT,
        "INSERT INTO block (tenant_id, writer_id, object_key, level, bytes, begin_ns, end_ns, "
        "row_count, profile_count, series_count, retention_key, retention_due_ns, reach_ns, "
        "footer_crc, deletions) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, nullif($12::bigint, "
        "9223372036854775807), $13, $14, $15::bigint[])",
        arena, err, PG_I64(tenant_id), PG_I64(writer_id), PG_TEXT(block->object_key), PG_I64(level),
        PG_I64((int64_t)block->bytes), PG_I64(block->begin_ns), PG_I64(block->end_ns),
        PG_I64((int64_t)block->row_count), PG_I64((int64_t)block->profile_count),
        PG_I64(block->series_count), PG_I64(block->retention_key), PG_I64(block->retention_due_ns),
        PG_I64(block->reach_ns), PG_I64(block->footer_crc),
        PG_TEXT(write_deletions(arena, &block->deletions)));
}

enum err_code catalogue_swap(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                             const struct catalogue_claim *claim, uint32_t level,
                             const struct catalogue_block *blocks, uint32_t count,
                             const struct catalogue_remainder *remainder, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = catalogue_lock_swaps(connection, arena, claim->tenant_id, true, err);
    if (code)
        return code;
    code = lock_writer(connection, arena, writer_id, claim->tenant_id, err);
    if (code)
        return code;
    code = mark_inputs_swapped(connection, arena, writer_id, claim, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < count; i++) {
        code = insert_block(connection, arena, writer_id, claim->tenant_id, level, &blocks[i], err);
        if (code)
            return code;
    }
    if (remainder)
        code = catalogue_insert_remainder(connection, arena, writer_id, claim, remainder, err);
    return code ? code : pg_commit(connection, err);
}

enum err_code catalogue_promote(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                const struct catalogue_claim *claim, uint32_t level,
                                struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "UPDATE block SET level = $1, leased_by = NULL, leased_until = NULL "
                           "WHERE id = $2 AND leased_by = $3 AND swapped_at IS NULL",
                           arena, &result, err, PG_I64(level), PG_I64(claim->ids[0]),
                           PG_I64(writer_id));
    if (code)
        return code;
    return catalogue_check_count(pg_affected(result), 1, err);
}

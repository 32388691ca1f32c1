#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

enum {
    LIST_MAX_BYTES = 64 << 20, /* of ids as text */
    /* The segments of a claim are open together, which takes a few times their bytes. */
    CLAIM_MAX_BYTES = 32 << 20
};

/* Sorts the claimed rows, oldest first, so that a claim is merged the same way each time: an UPDATE
 * returns rows in any order. */
#define IN_ORDER " SELECT * FROM claimed ORDER BY id"

/* Reads rows of (owner, tenant, columns of the place) as a claim. */
static void read_claim(struct arena *arena, const struct pg_result *result,
                       struct catalogue_claim *claim)
{
    const int rows = pg_row_count(result);
    const uint32_t *starts;
    *claim = (struct catalogue_claim){.places = catalogue_read_places(arena, result, 2, &starts)};
    claim->count = starts[rows];
    int64_t *owners = arena_new(arena, int64_t, claim->count);
    claim->owners = owners;
    claim->ids = arena_new(arena, int64_t, (size_t)rows);
    for (int row = 0; row < rows; row++) {
        claim->tenant_id = pg_get_i64(result, row, 1);
        claim->level = (uint32_t)pg_get_i64(result, row, 5);
        claim->ids[claim->id_count++] = pg_get_i64(result, row, 0);
        for (uint32_t i = starts[row]; i < starts[row + 1]; i++)
            owners[i] = pg_get_i64(result, row, 0);
    }
}

/*
 * Claims segments of one tenant: the tenant whose segments have waited longest, or with
 * only_deleted the tenant with the oldest deletion.
 *
 * The tenant is due with 64 segments, with 32 MiB, when the oldest is 15 s old, or when a deletion
 * waits. At most 256 rows are locked, oldest first, and of these the claim takes segments until the
 * ones before them have 32 MiB: a segment is taken while the bytes before it are below the limit.
 *
 * Example, sizes in MiB, oldest first: 10 10 10 10 10. The bytes before each are 0 10 20 30 40, so
 * the first four (40 MiB) are claimed, and the fifth stays for the next claim. One segment of 50
 * MiB is claimed alone.
 */
static enum err_code claim_segments(struct pg_connection *connection, struct arena *arena,
                                    int64_t writer_id, const char *costly, bool only_deleted,
                                    struct pg_result **ret_result, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH free AS ("
        "  SELECT t.segment_id, t.tenant_id, s.created_at, t.deletions,"
        "    (SELECT sum(part) FROM unnest(t.lengths) part) AS bytes FROM segment_tenant t"
        "  JOIN segment s ON s.id = t.segment_id"
        "  WHERE NOT t.is_swapped AND NOT t.is_broken"
        "    AND (t.leased_until IS NULL OR t.leased_until < now())), "
        "due AS ("
        "  SELECT tenant_id FROM free WHERE NOT $4 OR deletions <> '{}' GROUP BY tenant_id"
        "  HAVING count(*) >= 64 OR sum(bytes) >= $3 OR min(created_at) < now() - interval '15 s'"
        "    OR bool_or(deletions <> '{}')"
        "  ORDER BY tenant_id = ANY ($5::bigint[]),"
        "    CASE WHEN $4 THEN min((SELECT min(d) FROM unnest(deletions) d)) END,"
        "    min(created_at) LIMIT 1), "
        "locked AS ("
        "  SELECT t.segment_id, t.tenant_id, t.lengths FROM segment_tenant t"
        "  WHERE t.tenant_id = (SELECT tenant_id FROM due) AND NOT t.is_swapped"
        "    AND NOT t.is_broken AND (t.leased_until IS NULL OR t.leased_until < now())"
        "  ORDER BY t.segment_id LIMIT 256 FOR UPDATE SKIP LOCKED), "
        "sized AS ("
        "  SELECT segment_id, tenant_id, (SELECT sum(part) FROM unnest(lengths) part) AS bytes"
        "  FROM locked), "
        "summed AS ("
        "  SELECT segment_id, tenant_id,"
        "    coalesce(sum(bytes) OVER (ORDER BY segment_id ROWS BETWEEN UNBOUNDED PRECEDING"
        "      AND 1 PRECEDING), 0) AS bytes_before FROM sized), "
        "chosen AS (SELECT segment_id, tenant_id FROM summed WHERE bytes_before < $3), "
        "claimed AS ("
        "  UPDATE segment_tenant t"
        "  SET leased_by = $1, leased_until = now() + $2 * interval '1 s'"
        "  FROM chosen c, segment s WHERE t.segment_id = c.segment_id"
        "    AND t.tenant_id = c.tenant_id AND s.id = t.segment_id"
        "  RETURNING t.segment_id AS id, t.tenant_id, " CATALOGUE_SEGMENT_PLACE ")" IN_ORDER,
        arena, ret_result, err, PG_I64(writer_id), PG_I64(CATALOGUE_LEASE_S),
        PG_I64(CLAIM_MAX_BYTES), PG_BOOL(only_deleted), PG_TEXT(costly));
}

/*
 * Claims blocks of one level in one window. The windows of levels 1, 2 and 3 are ten minutes, an
 * hour and a day; their blocks become one block of the next level. Level 4 keeps its level: late
 * data makes more than one block of a day. Blocks of level 4 are merged only within two days of
 * their creation.
 *
 * A window is due with 16 blocks (8 of level 4), or, below level 4, when it has been over for a
 * minute and its newest block is a minute old. The window whose oldest block is oldest comes first,
 * and at most 64 blocks are claimed.
 *
 * Example: one tenant whose segments are merged every 15 s has 40 blocks of level 1 in ten minutes.
 * 16 are due after 4 minutes and become a block of level 2, so do the next 16, and the remaining 8
 * when the window is over: 3 blocks of level 2 per ten minutes, 18 in an hour. 16 of these
 * become one block of level 3 and the other 2 a second one, 48 in a day: three claims of 16, that
 * is 3 blocks of level 4. Each row is rewritten four times, and a day has 3 blocks instead of 5,760
 * of level 1.
 */
static enum err_code claim_blocks(struct pg_connection *connection, struct arena *arena,
                                  int64_t writer_id, const char *costly,
                                  struct pg_result **ret_result, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH free AS ("
        "  SELECT id, tenant_id, level, created_at, w.size,"
        "    div(begin_ns, w.size * 1000000000) AS span FROM block,"
        "    LATERAL (SELECT CASE level WHEN 1 THEN 600 WHEN 2 THEN 3600 ELSE 86400 END::bigint"
        "             AS size) w"
        "  WHERE swapped_at IS NULL AND NOT is_broken"
        "    AND (level < 4 OR created_at > now() - interval '2 days')"
        "    AND (merge_after IS NULL OR merge_after < now())"
        "    AND (leased_until IS NULL OR leased_until < now())), "
        "due AS ("
        "  SELECT tenant_id, level, span FROM free GROUP BY tenant_id, level, span, size"
        "  HAVING count(*) >= CASE level WHEN 4 THEN 8 ELSE 16 END OR (level < 4"
        "    AND (span + 1) * size + 60 < extract(epoch FROM now())"
        "    AND max(created_at) < now() - interval '1 minute')"
        "  ORDER BY tenant_id = ANY ($3::bigint[]), min(created_at) LIMIT 1), "
        "chosen AS ("
        "  SELECT b.id FROM block b WHERE b.id IN (SELECT f.id FROM free f JOIN due d"
        "    USING (tenant_id, level, span) ORDER BY f.id LIMIT 64) FOR UPDATE SKIP LOCKED), "
        "claimed AS ("
        "  UPDATE block b SET leased_by = $1, leased_until = now() + $2 * interval '1 s'"
        "  FROM chosen c WHERE b.id = c.id AND b.swapped_at IS NULL"
        "  RETURNING b.id, b.tenant_id, " CATALOGUE_BLOCK_PLACE ")" IN_ORDER,
        arena, ret_result, err, PG_I64(writer_id), PG_I64(CATALOGUE_LEASE_S), PG_TEXT(costly));
}

/* Claims the block with the oldest deletion, whichever tenant's it is. */
static enum err_code claim_rewrite(struct pg_connection *connection, struct arena *arena,
                                   int64_t writer_id, const char *costly,
                                   struct pg_result **ret_result, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "UPDATE block b SET leased_by = $1, leased_until = now() + $2 * interval '1 s'"
        "  FROM (SELECT id FROM block WHERE deletions <> '{}' AND swapped_at IS NULL"
        "    AND NOT is_broken AND (leased_until IS NULL OR leased_until < now())"
        "    ORDER BY tenant_id = ANY ($3::bigint[]), (SELECT min(d) FROM unnest(deletions) d), id"
        "    LIMIT 1"
        "    FOR UPDATE SKIP LOCKED) c WHERE b.id = c.id "
        "RETURNING b.id, b.tenant_id, " CATALOGUE_BLOCK_PLACE,
        arena, ret_result, err, PG_I64(writer_id), PG_I64(CATALOGUE_LEASE_S), PG_TEXT(costly));
}

/* ---- rotation ---- */

enum kind {
    KIND_SEGMENTS,
    KIND_DELETED_SEGMENTS, /* segments that a deletion waits for */
    KIND_DELETED_BLOCKS,
    KIND_BLOCKS,
    KIND_EXPIRY,
    KIND_MARKED
};

/* The kind that each claim tries first. The order changes so that other work goes on while segments
 * are always due, as with many tenants that send little. */
static const enum kind rotation_order[CATALOGUE_CLAIM_ROTATION] = {
    KIND_SEGMENTS,         KIND_DELETED_BLOCKS, KIND_SEGMENTS, KIND_BLOCKS,
    KIND_DELETED_SEGMENTS, KIND_DELETED_BLOCKS, KIND_EXPIRY,   KIND_MARKED};

/* The order in which the other kinds are tried when the first is not due. */
static const enum kind default_order[] = {KIND_SEGMENTS, KIND_DELETED_BLOCKS, KIND_BLOCKS,
                                          KIND_EXPIRY, KIND_MARKED};

struct claim_request {
    struct pg_connection *connection;
    struct arena *arena;
    int64_t writer_id;
    int64_t retention_s;
    const char *costly; /* ids of tenants, as an array */
    enum kind kind;     /* the kind of work of the result's rows, if any */
    struct catalogue_mark mark;
    struct pg_result *result;
};

static enum err_code claim_kind(struct claim_request *claim_request, enum kind kind,
                                struct err *err)
{
    struct pg_connection *connection = claim_request->connection;
    struct arena *arena = claim_request->arena;
    const int64_t writer_id = claim_request->writer_id;
    const char *costly = claim_request->costly;
    struct pg_result **result = &claim_request->result;
    claim_request->kind = kind;
    switch (kind) {
    case KIND_SEGMENTS:
    case KIND_DELETED_SEGMENTS:
        return claim_segments(connection, arena, writer_id, costly, kind == KIND_DELETED_SEGMENTS,
                              result, err);
    case KIND_DELETED_BLOCKS:
        return claim_rewrite(connection, arena, writer_id, costly, result, err);
    case KIND_BLOCKS:
        return claim_blocks(connection, arena, writer_id, costly, result, err);
    case KIND_EXPIRY:
        return catalogue_claim_expiry(connection, arena, writer_id, claim_request->retention_s,
                                      result, err);
    case KIND_MARKED:
        return catalogue_claim_marked(connection, arena, writer_id, &claim_request->mark, result,
                                      err);
    }
    return ERR_INTERNAL;
}

static enum err_code claim_needed(struct claim_request *claim_request, struct err *err)
{
    static const enum kind needed[] = {KIND_DELETED_BLOCKS, KIND_DELETED_SEGMENTS, KIND_EXPIRY};
    enum err_code code = ERR_NONE;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]) && !code; i++) {
        code = claim_kind(claim_request, needed[i], err);
        if (!code && pg_row_count(claim_request->result) > 0)
            break;
    }
    return code;
}

static enum err_code claim_any(struct claim_request *claim_request, uint64_t rotation,
                               struct err *err)
{
    const enum kind first = rotation_order[rotation % CATALOGUE_CLAIM_ROTATION];
    enum err_code code = claim_kind(claim_request, first, err);
    for (size_t i = 0; i < sizeof(default_order) / sizeof(default_order[0]); i++) {
        if (code || pg_row_count(claim_request->result) > 0)
            break;
        if (default_order[i] != first)
            code = claim_kind(claim_request, default_order[i], err);
    }
    return code;
}

static const char *write_costly(struct arena *arena, const struct catalogue_claim_order *order)
{
    buf_auto list;
    buf_init(&list, LIST_MAX_BYTES);
    for (uint32_t i = 0; i < order->costly_count; i++)
        catalogue_append_number(&list, order->costly[i]);
    return catalogue_end_list(arena, &list);
}

enum err_code catalogue_claim(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                              int64_t retention_s, const struct catalogue_claim_order *order,
                              struct catalogue_claim *ret_claim, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(jobs, &connection, err);
    struct claim_request claim_request = {.connection = connection,
                                          .arena = arena,
                                          .writer_id = writer_id,
                                          .retention_s = retention_s,
                                          .costly = write_costly(arena, order),
                                          .mark = {.reason = CATALOGUE_NOT_MARKED}};
    if (!code)
        code = order->only_needed ? claim_needed(&claim_request, err)
                                  : claim_any(&claim_request, order->rotation, err);
    if (code)
        return code;
    read_claim(arena, claim_request.result, ret_claim);
    ret_claim->mark = claim_request.mark;
    ret_claim->is_expiry = ret_claim->count && claim_request.kind == KIND_EXPIRY;
    ret_claim->is_rewrite = ret_claim->is_expiry || claim_request.mark.reason ||
                            (ret_claim->count && claim_request.kind == KIND_DELETED_BLOCKS);
    if (ret_claim->is_expiry)
        ret_claim->retention_key = pg_get_i64(claim_request.result, 0, 2 + CATALOGUE_PLACE_COLUMNS);
    if (ret_claim->count)
        code = catalogue_load_rules(connection, arena, PG_NO_TENANT, ret_claim->tenant_id,
                                    retention_s, &ret_claim->rules, err);
    if (code)
        return code;
    return catalogue_load_deletions(connection, arena, PG_NO_TENANT, ret_claim->places,
                                    ret_claim->count, &ret_claim->deletions,
                                    &ret_claim->deletion_count, err);
}

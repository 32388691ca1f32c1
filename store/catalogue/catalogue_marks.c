#include "store/catalogue/catalogue_internal.h"

#include "lib/base/arena.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_check.h"

enum { LIST_MAX_BYTES = 64 << 20 };

static const char *const reason_texts[] = {
    [CATALOGUE_NOT_MARKED] = "",
    [CATALOGUE_UNREADABLE] = "unreadable",
    [CATALOGUE_MISSING] = "missing",
    [CATALOGUE_TOO_LARGE] = "too large",
};

/* The next retry of a marked part: after 1, 2, 4, ... 1,024 minutes, then after a day each. */
#define RETRY_AT                                                                                   \
    "now() + least(interval '1 day', power(2, least(retry_count, 12)) * interval '1 min')"

/* ---- claims ---- */

/* Parts that a deletion waits for come first. A part that is too large is claimed only if other
 * tenants have parts in the same object or a deletion concerns it. */
static enum err_code claim_segment(struct pg_connection *connection, struct arena *arena,
                                   int64_t writer_id, struct pg_result **ret_result,
                                   struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH due AS ("
        "  SELECT t.segment_id, t.tenant_id, o.is_shared FROM segment_tenant t,"
        "    LATERAL (SELECT EXISTS (SELECT FROM segment_tenant o WHERE"
        "      o.segment_id = t.segment_id AND o.tenant_id <> t.tenant_id) AS is_shared) o"
        "  WHERE t.is_broken AND NOT t.is_swapped AND t.retry_at <= now()"
        "    AND (t.broken_why <> 'too large' OR t.deletions <> '{}' OR o.is_shared)"
        "    AND (t.leased_until IS NULL OR t.leased_until < now())"
        "  ORDER BY t.deletions = '{}', t.retry_at LIMIT 1 FOR UPDATE OF t SKIP LOCKED) "
        "UPDATE segment_tenant t"
        "  SET leased_by = $1, leased_until = now() + $2 * interval '1 s'"
        "  FROM due, segment s WHERE t.segment_id = due.segment_id"
        "    AND t.tenant_id = due.tenant_id AND s.id = t.segment_id "
        "RETURNING t.segment_id, t.tenant_id, " CATALOGUE_SEGMENT_PLACE
        ", t.broken_why, due.is_shared, t.deletions <> '{}'"
        " AND t.broken_since < now() - $3 * interval '1 day', t.row_count, t.begin_ns, t.end_ns",
        arena, ret_result, err, PG_I64(writer_id), PG_I64(CATALOGUE_LEASE_S),
        PG_I64(CATALOGUE_LOSS_DAYS));
}

static enum err_code claim_block(struct pg_connection *connection, struct arena *arena,
                                 int64_t writer_id, struct pg_result **ret_result, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "UPDATE block b SET leased_by = $1, leased_until = now() + $2 * interval '1 s'"
        "  FROM (SELECT id FROM block WHERE is_broken AND swapped_at IS NULL"
        "    AND retry_at <= now() AND (broken_why <> 'too large' OR deletions <> '{}')"
        "    AND (leased_until IS NULL OR leased_until < now())"
        "    ORDER BY deletions = '{}', retry_at LIMIT 1 FOR UPDATE SKIP LOCKED) c"
        "  WHERE b.id = c.id "
        "RETURNING b.id, b.tenant_id, " CATALOGUE_BLOCK_PLACE ", b.broken_why, false,"
        " b.deletions <> '{}'"
        " AND b.broken_since < now() - $3 * interval '1 day', b.row_count, b.begin_ns, b.end_ns",
        arena, ret_result, err, PG_I64(writer_id), PG_I64(CATALOGUE_LEASE_S),
        PG_I64(CATALOGUE_LOSS_DAYS));
}

enum err_code catalogue_claim_marked(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, struct catalogue_mark *ret_mark,
                                     struct pg_result **ret_result, struct err *err)
{
    enum err_code code = claim_segment(connection, arena, writer_id, ret_result, err);
    if (!code && pg_row_count(*ret_result) == 0)
        code = claim_block(connection, arena, writer_id, ret_result, err);
    if (code || pg_row_count(*ret_result) == 0)
        return code;
    const struct pg_result *result = *ret_result;
    const int first = 2 + CATALOGUE_PLACE_COLUMNS;
    const struct span reason = span_text(pg_get_text(result, 0, first));
    *ret_mark = (struct catalogue_mark){
        .reason = CATALOGUE_UNREADABLE,
        .is_shared = pg_get_bool(result, 0, first + 1),
        .can_drop = pg_get_bool(result, 0, first + 2),
        .row_count = (uint64_t)pg_get_i64(result, 0, first + 3),
        .begin_ns = pg_get_i64(result, 0, first + 4),
        .end_ns = pg_get_i64(result, 0, first + 5),
    };
    for (size_t i = CATALOGUE_UNREADABLE; i < sizeof(reason_texts) / sizeof(reason_texts[0]); i++)
        if (span_equal_text(reason, reason_texts[i]))
            ret_mark->reason = (enum catalogue_mark_reason)i;
    return ERR_NONE;
}

/* ---- marks ---- */

static enum err_code release_claim(struct pg_connection *connection, struct arena *arena,
                                   int64_t writer_id, const struct catalogue_claim *claim,
                                   struct err *err)
{
    return pg_queue_values(
        connection, PG_NO_TENANT,
        claim->level ? "UPDATE block SET leased_by = NULL, leased_until = NULL"
                       " WHERE tenant_id = $1 AND id = ANY ($2::bigint[]) AND leased_by = $3"
                     : "UPDATE segment_tenant SET leased_by = NULL, leased_until = NULL WHERE"
                       " tenant_id = $1 AND segment_id = ANY ($2::bigint[]) AND leased_by = $3",
        arena, err, PG_I64(claim->tenant_id), PG_TEXT(catalogue_id_list(arena, claim)),
        PG_I64(writer_id));
}

#define MARK                                                                                       \
    " SET is_broken = true, broken_why = $3, broken_since = coalesce(broken_since, now()),"        \
    " retry_at = " RETRY_AT ", retry_count = retry_count + 1"

#define DEFER " SET leased_by = NULL, leased_until = " RETRY_AT ", retry_count = retry_count + 1"

enum err_code catalogue_mark_broken(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                                    const struct catalogue_claim *claim, int64_t owner,
                                    enum catalogue_mark_reason reason, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = pg_queue_values(
        connection, PG_NO_TENANT,
        claim->level ? "UPDATE block" MARK " WHERE id = $1 AND tenant_id = $2"
                     : "UPDATE segment_tenant" MARK " WHERE segment_id = $1 AND tenant_id = $2",
        arena, err, PG_I64(owner), PG_I64(claim->tenant_id), PG_TEXT(reason_texts[reason]));
    if (code)
        return code;
    code = release_claim(connection, arena, writer_id, claim, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

enum err_code catalogue_defer(struct pg_pool *jobs, int64_t writer_id,
                              const struct catalogue_claim *claim, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    return code ? code
                : pg_query_values(connection, PG_NO_TENANT,
                                  claim->level
                                      ? "UPDATE block" DEFER " WHERE tenant_id = $1"
                                        " AND id = ANY ($2::bigint[]) AND leased_by = $3"
                                        " AND swapped_at IS NULL"
                                      : "UPDATE segment_tenant" DEFER " WHERE tenant_id = $1"
                                        " AND segment_id = ANY ($2::bigint[]) AND leased_by = $3"
                                        " AND NOT is_swapped",
                                  arena, &result, err, PG_I64(claim->tenant_id),
                                  PG_TEXT(catalogue_id_list(arena, claim)), PG_I64(writer_id));
}

#define UNMARK " SET is_broken = false, broken_why = NULL, broken_since = NULL, retry_at = NULL"

enum err_code catalogue_unmark(struct pg_pool *jobs, struct arena *arena, int64_t writer_id,
                               const struct catalogue_claim *claim, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    code = pg_queue_values(
        connection, PG_NO_TENANT,
        claim->level ? "UPDATE block" UNMARK " WHERE id = $1 AND tenant_id = $2"
                       " AND leased_by = $3 AND swapped_at IS NULL"
                     : "UPDATE segment_tenant" UNMARK " WHERE segment_id = $1"
                       " AND tenant_id = $2 AND leased_by = $3 AND NOT is_swapped",
        arena, err, PG_I64(claim->ids[0]), PG_I64(claim->tenant_id), PG_I64(writer_id));
    if (code)
        return code;
    code = release_claim(connection, arena, writer_id, claim, err);
    if (code)
        return code;
    return pg_commit(connection, err);
}

enum err_code catalogue_unmark_object(struct pg_pool *database, const char *object_key,
                                      int64_t tenant_id, bool *ret_did, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(
        connection, PG_NO_TENANT,
        "WITH blocks AS (UPDATE block" UNMARK
        " WHERE object_key = $1 AND tenant_id = $2 AND swapped_at IS NULL AND is_broken"
        " AND broken_why IS DISTINCT FROM 'too large'"
        " RETURNING 1), parts AS (UPDATE segment_tenant" UNMARK
        " WHERE segment_id = (SELECT id FROM segment WHERE object_key = $1)"
        " AND tenant_id = $2 AND NOT is_swapped AND is_broken"
        " AND broken_why IS DISTINCT FROM 'too large' RETURNING 1) "
        "SELECT (SELECT count(*) FROM blocks) + (SELECT count(*) FROM parts)",
        arena, &result, err, PG_TEXT(object_key), PG_I64(tenant_id));
    if (code)
        return code;
    *ret_did = pg_get_i64(result, 0, 0) > 0;
    return ERR_NONE;
}

enum err_code catalogue_list_others(struct pg_pool *database, struct arena *arena,
                                    int64_t tenant_id, const char *object_key,
                                    const char *const **ret_keys, uint32_t *ret_count,
                                    struct err *err)
{
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(database, &connection, err);
    if (!code)
        code = pg_query_values(
            connection, tenant_id,
            "(SELECT object_key FROM block WHERE swapped_at IS NULL AND NOT is_broken"
            "   AND object_key <> $1 ORDER BY id DESC LIMIT 2)"
            " UNION (SELECT object_key FROM block WHERE swapped_at IS NULL AND NOT is_broken"
            "   AND object_key <> $1 ORDER BY id LIMIT 2)"
            " UNION (SELECT object_key FROM segment WHERE swapped_at IS NULL"
            "   AND object_key <> $1 ORDER BY id DESC LIMIT 2)"
            " UNION (SELECT object_key FROM segment WHERE swapped_at IS NULL"
            "   AND object_key <> $1 ORDER BY id LIMIT 2)",
            arena, &result, err, PG_TEXT(object_key));
    if (code)
        return code;
    const int rows = pg_row_count(result);
    const char **keys = arena_new(arena, const char *, (size_t)rows + 1);
    for (int row = 0; row < rows; row++)
        keys[row] = arena_strdup(arena, pg_get_text(result, row, 0));
    *ret_keys = keys;
    *ret_count = (uint32_t)rows;
    return ERR_NONE;
}

/* ---- remainders ---- */

enum err_code catalogue_insert_remainder(struct pg_connection *connection, struct arena *arena,
                                         int64_t writer_id, const struct catalogue_claim *claim,
                                         const struct catalogue_remainder *remainder,
                                         struct err *err)
{
    buf_auto lengths, footer_crcs;
    buf_init(&lengths, LIST_MAX_BYTES);
    buf_init(&footer_crcs, LIST_MAX_BYTES);
    for (uint32_t i = 0; i < remainder->count; i++) {
        catalogue_append_number(&lengths, (int64_t)remainder->lengths[i]);
        catalogue_append_number(&footer_crcs, remainder->footer_crcs[i]);
    }
    return pg_queue_values(
        connection, PG_NO_TENANT,
        "WITH new AS (INSERT INTO segment (writer_id, object_key, bytes) VALUES ($1, $2, $3)"
        "             RETURNING id) "
        "INSERT INTO segment_tenant (segment_id, tenant_id, first_byte, lengths, begin_ns, end_ns,"
        " row_count, deletions, is_broken, broken_why, broken_since, retry_count, retry_at, "
        "reach_ns, footer_crcs) "
        "SELECT new.id, o.tenant_id, 0, $4::bigint[], $5, $6, $7,"
        " CASE WHEN $8 THEN '{}' ELSE o.deletions END, true, $9, o.broken_since, o.retry_count,"
        " " RETRY_AT ", o.reach_ns, $12::bigint[] FROM new, segment_tenant o"
        " WHERE o.segment_id = $10 AND o.tenant_id = $11",
        arena, err, PG_I64(writer_id), PG_TEXT(remainder->object_key),
        PG_I64((int64_t)remainder->bytes), PG_TEXT(catalogue_end_list(arena, &lengths)),
        PG_I64(remainder->begin_ns), PG_I64(remainder->end_ns),
        PG_I64((int64_t)remainder->row_count), PG_BOOL(remainder->is_rewritten),
        PG_TEXT(reason_texts[remainder->reason]), PG_I64(claim->ids[0]), PG_I64(claim->tenant_id),
        PG_TEXT(catalogue_end_list(arena, &footer_crcs)));
}

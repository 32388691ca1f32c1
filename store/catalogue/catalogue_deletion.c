#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

enum { IDS_MAX_BYTES = 1 << 24, DONE_DAYS = 30, OPEN_MAX = 100, DAY_MAX = 1000, RETRY_S = 60 };

enum err_code catalogue_lock_swaps(struct pg_connection *connection, struct arena *arena,
                                   int64_t tenant_id, bool is_shared, struct err *err)
{
    return pg_queue_values(
        connection, tenant_id,
        is_shared ? "SELECT pg_advisory_xact_lock_shared(hashtextextended('store ' || $1::text, 0))"
                  : "SELECT pg_advisory_xact_lock(hashtextextended('store ' || $1::text, 0))",
        arena, err, PG_I64(tenant_id));
}

/* Adds the deletion to rows, and ends the leases of these rows, because merges that have begun with
 * them have read deleted profiles. Rows are locked in order, so that two deletions cannot deadlock.
 */
static enum err_code add_deletion_to_rows(struct pg_connection *connection, struct arena *arena,
                                          int64_t tenant_id,
                                          const struct catalogue_deletion *deletion,
                                          struct err *err)
{
    enum err_code code = pg_queue_values(
        connection, tenant_id,
        "UPDATE block b SET deletions = b.deletions || $1::bigint, leased_by = NULL,"
        " leased_until = NULL FROM (SELECT id FROM block WHERE tenant_id = $2"
        " AND end_ns >= $3 AND begin_ns < $4 ORDER BY id FOR UPDATE) o WHERE b.id = o.id",
        arena, err, PG_I64(deletion->id), PG_I64(tenant_id), PG_I64(deletion->begin_ns),
        PG_I64(deletion->end_ns));
    return code ? code
                : pg_queue_values(
                      connection, tenant_id,
                      "UPDATE segment_tenant s SET deletions = s.deletions || $1::bigint,"
                      " leased_by = NULL, leased_until = NULL FROM (SELECT segment_id FROM"
                      " segment_tenant WHERE tenant_id = $2 AND end_ns >= $3 AND begin_ns < $4"
                      " ORDER BY segment_id FOR UPDATE) o"
                      " WHERE s.segment_id = o.segment_id AND s.tenant_id = $2",
                      arena, err, PG_I64(deletion->id), PG_I64(tenant_id),
                      PG_I64(deletion->begin_ns), PG_I64(deletion->end_ns));
}

/* Limits open deletions: each deletion ends the leases of the tenant's merges, so with an endless
 * series of deletions no merge would finish. Deletions older than an hour do not count, since a
 * marked part keeps a deletion open for days. Limits all deletions of a day, since their rows are
 * kept for DONE_DAYS and count towards no quota. */
static enum err_code check_count(struct pg_connection *connection, struct arena *arena,
                                 int64_t tenant_id, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "SELECT count(*) FILTER (WHERE done_at IS NULL"
        "   AND requested_at > now() - interval '1 hour'), count(*),"
        " ceil(extract(epoch FROM min(requested_at) + interval '1 day' - now()))::bigint"
        " FROM store_deletion"
        " WHERE tenant_id = $1 AND requested_at > now() - interval '1 day'",
        arena, &result, err, PG_I64(tenant_id));
    if (code)
        return code;
    if (pg_get_i64(result, 0, 0) >= OPEN_MAX) {
        err_set(err, ERR_RATE_LIMITED,
                "%d deletions of this team's profiles, the most at once, are not done yet: "
                "wait until some are, or delete more with one selector",
                OPEN_MAX);
        err->retry_after_s = RETRY_S;
        return ERR_RATE_LIMITED;
    }
    if (pg_get_i64(result, 0, 1) >= DAY_MAX) {
        err_set(err, ERR_RATE_LIMITED,
                "this team has deleted profiles %d times, the most in 24 hours: delete more "
                "with one selector",
                DAY_MAX);
        err->retry_after_s = (int)pg_get_i64(result, 0, 2);
        return ERR_RATE_LIMITED;
    }
    return ERR_NONE;
}

enum err_code catalogue_add_deletion(struct pg_connection *connection, struct arena *arena,
                                     int64_t tenant_id, struct catalogue_deletion *deletion,
                                     struct err *err)
{
    struct pg_result *result;
    enum err_code code =
        pg_query_values(connection, tenant_id, "SELECT id FROM tenant WHERE id = $1 FOR KEY SHARE",
                        arena, &result, err, PG_I64(tenant_id));
    if (code)
        return code;
    if (pg_row_count(result) == 0)
        return err_set(err, ERR_NOT_FOUND, "this team is being deleted");
    code = catalogue_lock_swaps(connection, arena, tenant_id, false, err);
    if (code)
        return code;
    code = check_count(connection, arena, tenant_id, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "INSERT INTO store_deletion (tenant_id, selector, begin_ns, end_ns) "
                           "VALUES ($1, $2, $3, $4) RETURNING id",
                           arena, &result, err, PG_I64(tenant_id), PG_TEXT(deletion->selector),
                           PG_I64(deletion->begin_ns), PG_I64(deletion->end_ns));
    if (code)
        return code;
    deletion->id = pg_get_i64(result, 0, 0);
    return add_deletion_to_rows(connection, arena, tenant_id, deletion, err);
}

enum err_code catalogue_load_deletions(struct pg_connection *connection, struct arena *arena,
                                       int64_t tenant_id, const struct catalogue_place *places,
                                       uint32_t count, const struct catalogue_deletion **ret_list,
                                       uint32_t *ret_count, struct err *err)
{
    buf_auto ids;
    struct pg_result *result;
    *ret_list = NULL;
    *ret_count = 0;
    buf_init(&ids, IDS_MAX_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        const struct deletion_set_ids *deletions = &places[i].deletions;
        if (i && deletions->ids == places[i - 1].deletions.ids)
            continue; /* same segment */
        for (uint32_t j = 0; j < deletions->count; j++)
            catalogue_append_number(&ids, deletions->ids[j]);
    }
    if (!ids.size)
        return ERR_NONE;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        "SELECT id, selector, begin_ns, end_ns FROM store_deletion WHERE id = ANY ($1::bigint[]) "
        "ORDER BY id",
        arena, &result, err, PG_TEXT(catalogue_end_list(arena, &ids)));
    if (code)
        return code;
    const int rows = pg_row_count(result);
    struct catalogue_deletion *list = arena_new(arena, struct catalogue_deletion, (size_t)rows);
    for (int row = 0; row < rows; row++)
        list[row] = (struct catalogue_deletion){
            .id = pg_get_i64(result, row, 0),
            .selector = pg_get_text(result, row, 1),
            .begin_ns = pg_get_i64(result, row, 2),
            .end_ns = pg_get_i64(result, row, 3),
        };
    *ret_list = list;
    *ret_count = (uint32_t)rows;
    return ERR_NONE;
}

enum err_code catalogue_finish_deletions(struct pg_connection *connection, struct arena *arena,
                                         struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query(
        connection, PG_NO_TENANT,
        "UPDATE store_deletion d SET done_at = now() WHERE d.done_at IS NULL"
        " AND NOT EXISTS (SELECT FROM block b WHERE b.deletions <> '{}' AND d.id = ANY"
        " (b.deletions)) AND NOT EXISTS (SELECT FROM segment_tenant s WHERE s.deletions <> '{}'"
        " AND d.id = ANY (s.deletions)) AND NOT EXISTS (SELECT FROM object_trash t"
        " WHERE t.deletions <> '{}' AND d.id = ANY (t.deletions))",
        NULL, 0, arena, &result, err);
    return code ? code
                : pg_query_values(connection, PG_NO_TENANT,
                                  "DELETE FROM store_deletion"
                                  " WHERE done_at < now() - $1 * interval '1 day'",
                                  arena, &result, err, PG_I64(DONE_DAYS));
}

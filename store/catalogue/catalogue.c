#include "store/catalogue/catalogue.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"
#include "store/types.h"

#include <inttypes.h>
#include <string.h>

enum {
    LIST_MAX_BYTES = 64 << 20,
    CLOSE_WRITER_MS = 2000, /* requests wait for it; on failure other servers end the writer */
};

enum err_code catalogue_open_writer(struct pg_pool *jobs, const char *name, int64_t *ret_writer_id,
                                    struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "INSERT INTO store_writer (name) VALUES (left($1, 300)) "
                           "RETURNING id",
                           arena, &result, err, PG_TEXT(name));
    if (code)
        return code;
    *ret_writer_id = pg_get_i64(result, 0, 0);
    return ERR_NONE;
}

enum err_code catalogue_close_writer(struct pg_pool *jobs, int64_t writer_id, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(jobs, &connection, err);
    if (code)
        return code;
    pg_limit_until(connection, clock_monotonic_ns() + CLOSE_WRITER_MS * CLOCK_NS_PER_MS);
    return pg_query_values(connection, PG_NO_TENANT, CATALOGUE_END_WRITERS("id = $1"), arena,
                           &result, err, PG_I64(writer_id));
}

/* ---- flush ---- */

/* Locks the tenants against deletion, in order of id; deleted ones have no parts. */
static enum err_code lock_tenants(struct pg_connection *connection, struct arena *arena,
                                  int64_t retention_s, struct catalogue_part *parts, uint32_t count,
                                  struct err *err)
{
    buf_auto tenants;
    buf_init(&tenants, LIST_MAX_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || parts[i].tenant_id != parts[i - 1].tenant_id)
            catalogue_append_number(&tenants, parts[i].tenant_id);
    }
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        /* retention_longest_s inlined: a SQL function is parsed and planned for each flush, a ninth
         * of a flush's cost in the database. */
        "SELECT id, (SELECT CASE WHEN min(s) = 0 THEN 0 ELSE max(s) END "
        "  FROM (SELECT coalesce(t.profile_retention_s, $2) AS s UNION ALL "
        "        SELECT coalesce(r.totals_s + 3600, r.keep_s) FROM retention_rule r "
        "        WHERE r.tenant_id = t.id) AS kept) "
        "FROM tenant t WHERE id = ANY ($1::bigint[]) ORDER BY id FOR KEY SHARE OF t SKIP LOCKED",
        arena, &result, err, PG_TEXT(catalogue_end_list(arena, &tenants)), PG_I64(retention_s));
    if (code)
        return code;
    for (uint32_t i = 0; i < count; i++)
        parts[i].state = CATALOGUE_NO_TENANT;
    for (int row = 0; row < pg_row_count(result); row++) {
        const int64_t kept_s = pg_get_i64(result, row, 1);
        const int64_t oldest_ns = kept_s ? clock_wall_ns() - kept_s * CLOCK_NS_PER_S : INT64_MIN;
        for (uint32_t i = 0; i < count; i++) {
            if (parts[i].tenant_id == pg_get_i64(result, row, 0))
                parts[i].state = parts[i].end_ns < oldest_ns ? CATALOGUE_TOO_OLD : CATALOGUE_NEW;
        }
    }
    return ERR_NONE;
}

enum { BATCH_KEY_BYTES = sizeof(int64_t) + STORE_BATCH_ID_BYTES };

static struct span batch_key(struct arena *arena, int64_t tenant_id, const uint8_t *batch_id)
{
    uint8_t *key = arena_new_raw(arena, uint8_t, BATCH_KEY_BYTES);
    memcpy(key, &tenant_id, sizeof(tenant_id));
    memcpy(key + sizeof(tenant_id), batch_id, STORE_BATCH_ID_BYTES);
    return span_of(key, BATCH_KEY_BYTES);
}

/* The first part with each id, in which it is new if the database inserts it. */
static void find_first_parts(struct arena *arena, struct map_bytes *first_parts,
                             const struct catalogue_part *parts, uint32_t count)
{
    map_bytes_init(first_parts, count);
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].state == CATALOGUE_DUPLICATE)
            map_bytes_add(first_parts, batch_key(arena, parts[i].tenant_id, parts[i].batch_id), i);
    }
}

static void mark_new(struct arena *arena, struct catalogue_part *parts, uint32_t count,
                     const struct pg_result *inserted)
{
    struct map_bytes first_parts;
    find_first_parts(arena, &first_parts, parts, count);
    for (int row = 0; row < pg_row_count(inserted); row++) {
        const struct span batch_id = pg_get_bytes(inserted, row, 1);
        if (batch_id.size != STORE_BATCH_ID_BYTES)
            continue;
        const uint32_t part = map_bytes_find(
            &first_parts, batch_key(arena, pg_get_i64(inserted, row, 0), batch_id.data));
        if (part != MAP_ABSENT)
            parts[part].state = CATALOGUE_NEW;
    }
    map_bytes_fini(&first_parts);
}

/* Inserted in order, so that two flushes cannot deadlock. */
static enum err_code insert_batch_ids(struct pg_connection *connection, struct arena *arena,
                                      struct catalogue_part *parts, uint32_t count, struct err *err)
{
    buf_auto tenants;
    buf_auto batches;
    buf_init(&tenants, LIST_MAX_BYTES);
    buf_init(&batches, LIST_MAX_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        if (!parts[i].batch_id || parts[i].state != CATALOGUE_NEW)
            continue;
        char hex[2 * STORE_BATCH_ID_BYTES + 1];
        digest_hex(span_of(parts[i].batch_id, STORE_BATCH_ID_BYTES), hex);
        catalogue_append_number(&tenants, parts[i].tenant_id);
        buf_printf(&batches, "%c\"\\\\x%s\"", batches.size ? ',' : '{', hex);
        parts[i].state = CATALOGUE_DUPLICATE;
    }
    if (!batches.size)
        return ERR_NONE;
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "INSERT INTO ingest_batch (tenant_id, batch_id) "
        "SELECT tenant, batch FROM unnest($1::bigint[], $2::bytea[]) AS new (tenant, batch) "
        "ORDER BY 1, 2 ON CONFLICT DO NOTHING RETURNING tenant_id, batch_id",
        arena, &result, err, PG_TEXT(catalogue_end_list(arena, &tenants)),
        PG_TEXT(catalogue_end_list(arena, &batches)));
    if (!code)
        mark_new(arena, parts, count, result);
    return code;
}

static enum err_code begin_flush(struct pg_connection *connection, struct arena *arena,
                                 int64_t retention_s, struct catalogue_part *parts, uint32_t count,
                                 struct err *err)
{
    enum err_code code = pg_begin(connection, PG_NO_TENANT, err);
    if (code)
        return code;
    /* force_generic_plan: long arrays make a custom plan look cheaper, and planning was a fifth of
     * a flush's cost in the database although all plans are equal. */
    code = pg_queue(connection, PG_NO_TENANT, "SET LOCAL plan_cache_mode = force_generic_plan",
                    NULL, 0, arena, err);
    if (code)
        return code;
    code = lock_tenants(connection, arena, retention_s, parts, count, err);
    if (code)
        return code;
    return insert_batch_ids(connection, arena, parts, count, err);
}

enum err_code catalogue_begin_flush(struct pg_connection *connection, struct arena *arena,
                                    int64_t retention_s, struct catalogue_part *parts,
                                    uint32_t count, struct err *err)
{
    const enum err_code code = begin_flush(connection, arena, retention_s, parts, count, err);
    if (code)
        pg_rollback(connection);
    return code;
}

/* One row per tenant for its new parts. */
struct rows {
    struct buf tenants;
    struct buf first_bytes;
    struct buf lengths;     /* an array of arrays in text form */
    struct buf footer_crcs; /* as lengths */
    struct buf begins;
    struct buf ends;
    struct buf reaches;
    struct buf row_counts;
};

static void append_row(struct rows *rows, const struct catalogue_part *parts, uint32_t count)
{
    int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN, reach_ns = INT64_MIN;
    uint64_t row_count = 0, first_byte = UINT64_MAX;
    buf_printf(&rows->lengths, "%c\"", rows->lengths.size ? ',' : '{');
    buf_printf(&rows->footer_crcs, "%c\"", rows->footer_crcs.size ? ',' : '{');
    for (uint32_t i = 0; i < count; i++) {
        const struct catalogue_part *part = &parts[i];
        if (part->state != CATALOGUE_NEW)
            continue;
        begin_ns = part->begin_ns < begin_ns ? part->begin_ns : begin_ns;
        end_ns = part->end_ns > end_ns ? part->end_ns : end_ns;
        reach_ns = part->reach_ns > reach_ns ? part->reach_ns : reach_ns;
        row_count += part->row_count;
        const char separator = first_byte == UINT64_MAX ? '{' : ',';
        buf_printf(&rows->lengths, "%c%" PRIu64, separator, part->bytes);
        buf_printf(&rows->footer_crcs, "%c%" PRIu32, separator, part->footer_crc);
        first_byte = first_byte == UINT64_MAX ? part->offset : first_byte;
    }
    buf_append_text(&rows->lengths, "}\"");
    buf_append_text(&rows->footer_crcs, "}\"");
    catalogue_append_number(&rows->tenants, parts[0].tenant_id);
    catalogue_append_number(&rows->first_bytes, (int64_t)first_byte);
    catalogue_append_number(&rows->begins, begin_ns);
    catalogue_append_number(&rows->ends, end_ns);
    catalogue_append_number(&rows->reaches, reach_ns);
    catalogue_append_number(&rows->row_counts, (int64_t)row_count);
}

static void append_rows(struct rows *rows, const struct catalogue_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i, new_count = 0;
        for (; end < count && parts[end].tenant_id == parts[i].tenant_id; end++)
            new_count += parts[end].state == CATALOGUE_NEW;
        if (new_count)
            append_row(rows, parts + i, end - i);
        i = end;
    }
}

static enum err_code insert_segment(struct pg_connection *connection, struct arena *arena,
                                    int64_t writer_id, const char *object_key, uint64_t bytes,
                                    struct rows *rows, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, PG_NO_TENANT,
        "WITH writer AS (UPDATE store_writer SET seen_at = now() "
        "                WHERE id = $1 AND ended_at IS NULL RETURNING id), "
        "new AS (INSERT INTO segment (writer_id, object_key, bytes) "
        "        SELECT id, $2, $3 FROM writer RETURNING id) "
        "INSERT INTO segment_tenant (segment_id, tenant_id, first_byte, lengths, begin_ns, end_ns, "
        "                            reach_ns, row_count, footer_crcs) "
        "SELECT new.id, t.tenant, t.first_byte, t.lengths::bigint[], t.begin_ns, t.end_ns, "
        "       t.reach_ns, t.row_count, t.footer_crcs::bigint[] "
        "FROM new, unnest($4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], "
        "                 $9::bigint[], $10::bigint[], $11::text[]) "
        "     AS t (tenant, first_byte, lengths, begin_ns, end_ns, reach_ns, row_count, "
        "           footer_crcs)",
        arena, &result, err, PG_I64(writer_id), PG_TEXT(object_key), PG_I64((int64_t)bytes),
        PG_TEXT(catalogue_end_list(arena, &rows->tenants)),
        PG_TEXT(catalogue_end_list(arena, &rows->first_bytes)),
        PG_TEXT(catalogue_end_list(arena, &rows->lengths)),
        PG_TEXT(catalogue_end_list(arena, &rows->begins)),
        PG_TEXT(catalogue_end_list(arena, &rows->ends)),
        PG_TEXT(catalogue_end_list(arena, &rows->reaches)),
        PG_TEXT(catalogue_end_list(arena, &rows->row_counts)),
        PG_TEXT(catalogue_end_list(arena, &rows->footer_crcs)));
    if (!code && pg_affected(result) == 0)
        return err_set(err, ERR_CONFLICT,
                       "this server has not been seen for long and another has taken over");
    return code;
}

enum err_code catalogue_commit_flush(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, const char *object_key, uint64_t bytes,
                                     const struct catalogue_part *parts, uint32_t count,
                                     struct err *err)
{
    struct rows rows;
    struct buf *const lists[] = {&rows.tenants,    &rows.first_bytes, &rows.lengths,
                                 &rows.begins,     &rows.ends,        &rows.reaches,
                                 &rows.row_counts, &rows.footer_crcs};
    const size_t list_count = sizeof(lists) / sizeof(lists[0]);
    for (size_t i = 0; i < list_count; i++)
        buf_init(lists[i], LIST_MAX_BYTES);
    append_rows(&rows, parts, count);
    enum err_code code = ERR_NONE;
    if (rows.tenants.size)
        code = insert_segment(connection, arena, writer_id, object_key, bytes, &rows, err);
    for (size_t i = 0; i < list_count; i++)
        buf_fini(lists[i]);
    if (code) {
        pg_rollback(connection);
        return code;
    }
    return pg_commit(connection, err);
}

/* ---- reading ---- */

/* True for a block or part with a profile that ends an hour or more after the last start
 * (1800000000000 ns twice), and that may extend into the window. Such rows have an index of their
 * own; all others are found by their starts. Both numbers are halved because their difference may
 * overflow. */
#define FAR_OF(table)                                                                              \
    table ".reach_ns > $3 AND " table ".reach_ns / 2 - " table                                     \
          ".end_ns / 2 >= 1800000000000 AND " table ".end_ns >= $4 AND " table                     \
          ".end_ns < $1 AND " table ".begin_ns < $2 "
#define BLOCK_PLACES                                                                               \
    "SELECT " CATALOGUE_BLOCK_PLACE ", b.id FROM block b WHERE b.swapped_at IS NULL AND "
#define SEGMENT_PLACES                                                                             \
    "SELECT " CATALOGUE_SEGMENT_PLACE ", s.id "                                                    \
    "FROM segment_tenant t JOIN segment s ON s.id = t.segment_id WHERE NOT t.is_swapped AND "

static enum err_code find_places(struct pg_connection *connection, struct arena *arena,
                                 int64_t tenant_id, const struct catalogue_window *window,
                                 struct catalogue_found *found, struct err *err)
{
    struct pg_result *result;
    enum err_code code = pg_query_values(
        connection, tenant_id,
        BLOCK_PLACES "b.end_ns >= $1 AND b.begin_ns < $2 UNION ALL " BLOCK_PLACES FAR_OF(
            "b") "UNION ALL " SEGMENT_PLACES "t.end_ns >= $1 AND t.begin_ns < $2 "
                 "UNION ALL " SEGMENT_PLACES FAR_OF("t") "ORDER BY 4 DESC, 7",
        arena, &result, err, PG_I64(window->start_ns), PG_I64(window->end_ns),
        PG_I64(window->reach_ns), PG_I64(window->far_ns));
    if (code)
        return code;
    const uint32_t *starts;
    found->places = catalogue_read_places(arena, result, 0, &starts);
    found->count = starts[pg_row_count(result)];
    return ERR_NONE;
}

enum err_code catalogue_find(struct pg_pool *database, struct arena *arena, int64_t tenant_id,
                             int64_t retention_s, const struct catalogue_window *window,
                             struct catalogue_found *ret_found, struct err *err)
{
    pg_auto connection = NULL;
    *ret_found = (struct catalogue_found){0};
    enum err_code code = pg_take(database, &connection, err);
    if (code)
        return code;
    code = find_places(connection, arena, tenant_id, window, ret_found, err);
    if (code)
        return code;
    code = catalogue_load_rules(connection, arena, tenant_id, tenant_id, retention_s,
                                &ret_found->rules, err);
    if (code)
        return code;
    return catalogue_load_deletions(connection, arena, tenant_id, ret_found->places,
                                    ret_found->count, &ret_found->deletions,
                                    &ret_found->deletion_count, err);
}

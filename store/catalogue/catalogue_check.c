#include "store/catalogue/catalogue_check.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/io/pg.h"
#include "store/catalogue/catalogue_internal.h"

enum { LIST_MAX_BYTES = 64 << 20 };

/* Runs a query over all tenants and reads its entries. */
static enum err_code list_entries(struct pg_pool *database, struct arena *arena, const char *sql,
                                  struct pg_result **ret_result, struct err *err)
{
    pg_auto connection = NULL;
    enum err_code code = pg_take(database, &connection, err);
    return code ? code : pg_query(connection, PG_NO_TENANT, sql, NULL, 0, arena, ret_result, err);
}

/* Writes keys as a PostgreSQL array; they contain no character that needs quoting. */
static void write_keys(const char *const *keys, uint32_t count, struct buf *list)
{
    buf_append_byte(list, '{');
    for (uint32_t i = 0; i < count; i++)
        buf_printf(list, "%s%s", i ? "," : "", keys[i]);
    buf_append_text(list, "}");
}

#define ENTRY_COLUMNS_OF_BLOCK                                                                     \
    "SELECT " CATALOGUE_BLOCK_PLACE ", b.tenant_id, b.row_count, b.begin_ns, b.end_ns, b.bytes,"   \
    " b.is_broken, b.reach_ns FROM block b"
#define ENTRY_COLUMNS_OF_SEGMENT                                                                   \
    "SELECT " CATALOGUE_SEGMENT_PLACE ", t.tenant_id, t.row_count, t.begin_ns, t.end_ns, s.bytes," \
    " t.is_broken, t.reach_ns"                                                                     \
    " FROM segment_tenant t JOIN segment s ON s.id = t.segment_id"

static enum err_code query_entries(struct pg_pool *database, struct arena *arena,
                                   const char *const *keys, uint32_t key_count,
                                   struct pg_result **ret_result, struct err *err)
{
    if (!keys)
        return list_entries(database, arena,
                            ENTRY_COLUMNS_OF_BLOCK " UNION ALL " ENTRY_COLUMNS_OF_SEGMENT
                                                   " ORDER BY 1, 2",
                            ret_result, err);
    pg_auto connection = NULL;
    buf_auto list;
    buf_init(&list, LIST_MAX_BYTES);
    write_keys(keys, key_count, &list);
    const enum err_code code = pg_take(database, &connection, err);
    if (code)
        return code;
    return pg_query_values(
        connection, PG_NO_TENANT,
        ENTRY_COLUMNS_OF_BLOCK
        " WHERE b.object_key = ANY ($1::text[]) UNION ALL " ENTRY_COLUMNS_OF_SEGMENT
        " WHERE s.object_key = ANY ($1::text[]) ORDER BY 1, 2",
        arena, ret_result, err, PG_SPAN(buf_span(&list)));
}

enum err_code catalogue_list_all(struct pg_pool *database, struct arena *arena,
                                 const char *const *keys, uint32_t key_count,
                                 const struct catalogue_entry **ret_entries, uint32_t *ret_count,
                                 struct err *err)
{
    struct pg_result *result;
    enum err_code code = query_entries(database, arena, keys, key_count, &result, err);
    if (code)
        return code;
    const int rows = pg_row_count(result);
    const uint32_t *starts;
    struct catalogue_place *places = catalogue_read_places(arena, result, 0, &starts);
    const int first = CATALOGUE_PLACE_COLUMNS;
    struct catalogue_entry *entries = arena_new(arena, struct catalogue_entry, (size_t)rows);
    for (int row = 0; row < rows; row++) {
        struct catalogue_entry *entry = &entries[row];
        entry->places = places + starts[row];
        entry->place_count = starts[row + 1] - starts[row];
        entry->tenant_id = pg_get_i64(result, row, first);
        entry->row_count = (uint64_t)pg_get_i64(result, row, first + 1);
        entry->begin_ns = pg_get_i64(result, row, first + 2);
        entry->end_ns = pg_get_i64(result, row, first + 3);
        entry->object_bytes = (uint64_t)pg_get_i64(result, row, first + 4);
        entry->is_marked = pg_get_bool(result, row, first + 5);
        entry->reach_ns = pg_get_i64(result, row, first + 6);
    }
    *ret_entries = entries;
    *ret_count = (uint32_t)rows;
    return ERR_NONE;
}

enum err_code catalogue_has_object(struct pg_pool *database, const char *object_key,
                                   bool *ret_exists, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, PG_NO_TENANT,
                           "SELECT EXISTS (SELECT FROM block WHERE object_key = $1)"
                           " OR EXISTS (SELECT FROM segment WHERE object_key = $1)",
                           arena, &result, err, PG_TEXT(object_key));
    if (code)
        return code;
    *ret_exists = pg_get_bool(result, 0, 0);
    return ERR_NONE;
}

enum err_code catalogue_measure(struct pg_pool *database, struct arena *arena,
                                const struct store_measure **ret_measures, uint32_t *ret_count,
                                struct err *err)
{
    struct pg_result *result;
    enum err_code code = list_entries(
        database, arena,
        "WITH part AS (SELECT tenant_id, level::bigint, bytes, row_count, begin_ns, end_ns,"
        " swapped_at IS NOT NULL AS is_swapped, is_broken, deletions <> '{}' AS is_deleting,"
        " leased_until > now() AS is_leased FROM block"
        " UNION ALL SELECT tenant_id, 0, (SELECT sum(l) FROM unnest(lengths) AS l)::bigint,"
        " row_count, begin_ns, end_ns, is_swapped, is_broken, deletions <> '{}',"
        " leased_until > now() FROM segment_tenant) "
        "SELECT p.tenant_id, t.name, level, count(*) FILTER (WHERE NOT is_swapped),"
        " coalesce(sum(bytes) FILTER (WHERE NOT is_swapped), 0)::bigint,"
        " coalesce(sum(row_count) FILTER (WHERE NOT is_swapped), 0)::bigint,"
        " min(begin_ns) FILTER (WHERE NOT is_swapped),"
        " max(end_ns) FILTER (WHERE NOT is_swapped),"
        " count(*) FILTER (WHERE NOT is_swapped AND is_broken),"
        " count(*) FILTER (WHERE NOT is_swapped AND is_leased),"
        " count(*) FILTER (WHERE NOT is_swapped AND is_deleting),"
        " count(*) FILTER (WHERE is_swapped),"
        " coalesce(sum(bytes) FILTER (WHERE is_swapped), 0)::bigint"
        " FROM part p JOIN tenant t ON t.id = p.tenant_id GROUP BY 1, 2, 3 ORDER BY 1, 3",
        &result, err);
    if (code)
        return code;
    const int rows = pg_row_count(result);
    struct store_measure *measures = arena_new(arena, struct store_measure, (size_t)rows);
    for (int row = 0; row < rows; row++)
        measures[row] = (struct store_measure){
            .tenant_id = pg_get_i64(result, row, 0),
            .tenant_name = pg_get_text(result, row, 1),
            .level = (uint32_t)pg_get_i64(result, row, 2),
            .block_count = (uint64_t)pg_get_i64(result, row, 3),
            .bytes = (uint64_t)pg_get_i64(result, row, 4),
            .row_count = (uint64_t)pg_get_i64(result, row, 5),
            .begin_ns = pg_get_i64(result, row, 6),
            .end_ns = pg_get_i64(result, row, 7),
            .broken_count = (uint64_t)pg_get_i64(result, row, 8),
            .merging_count = (uint64_t)pg_get_i64(result, row, 9),
            .deleting_count = (uint64_t)pg_get_i64(result, row, 10),
            .replaced_count = (uint64_t)pg_get_i64(result, row, 11),
            .replaced_bytes = (uint64_t)pg_get_i64(result, row, 12),
        };
    *ret_measures = measures;
    *ret_count = (uint32_t)rows;
    return ERR_NONE;
}

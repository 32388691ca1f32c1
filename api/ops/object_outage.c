#include "api/ops/object_outage.h"

#include "api/core/integrity.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

enum { RETRY_S = 5 };

bool object_outage_is_possible(enum err_code code, const struct err *failure)
{
    return code == ERR_NOT_FOUND || (code == ERR_IO && failure->is_unreadable);
}

/* Two of the oldest and two of the newest rows. first and last are lists of columns: a row value
 * such as (a, b) does not use the index of the primary key, but sorts the table. */
#define ENDS_OF(table, where, first, last)                                                         \
    "(SELECT object_key FROM " table " WHERE object_key <> $1 " where " ORDER BY " first           \
    " LIMIT 2) UNION (SELECT object_key FROM " table " WHERE object_key <> $1 " where              \
    " ORDER BY " last " LIMIT 2)"
#define SEGMENTS ENDS_OF("segment", "", "id", "id DESC")
#define BLOCKS ENDS_OF("block", "", "id", "id DESC")
#define SHARES ENDS_OF("share", "AND state = 'live'", "id", "id DESC")
#define DEBUG_FILES ENDS_OF("debug_file", "AND object_key <> ''", "id", "id DESC")
#define TABLES ENDS_OF("symbol_table", "", "tenant_id, build_id", "tenant_id DESC, build_id DESC")
#define TABLES_PUBLIC ENDS_OF("symbol_table_public", "", "build_id", "build_id DESC")

static enum err_code list_others(struct pg_pool *database, struct arena *arena, const char *key,
                                 struct pg_result **ret_rows, struct err *err)
{
    static const char sql[] = SEGMENTS " UNION " BLOCKS " UNION " SHARES " UNION " DEBUG_FILES
                                       " UNION " TABLES " UNION " TABLES_PUBLIC;
    pg_auto connection = NULL;
    const enum err_code code = pg_take(database, &connection, err);
    return code
               ? code
               : pg_query_values(connection, PG_NO_TENANT, sql, arena, ret_rows, err, PG_TEXT(key));
}

enum err_code object_outage_check(struct pg_pool *database, struct object_store *objects,
                                  const char *key, struct err *err)
{
    arena_auto arena = arena_create();
    struct pg_result *rows;
    struct err failure;
    enum err_code code = list_others(database, arena, key, &rows, err);
    if (code)
        return code;
    for (int row = 0; row < pg_row_count(rows); row++) {
        if (!object_probe(objects, pg_get_text(rows, row, 0), NULL, &failure))
            return ERR_NONE;
    }
    if (pg_row_count(rows) == 0)
        return ERR_NONE;
    err_set(err, ERR_BUSY, "the object store cannot be used: no other object can be read: %s",
            failure.message);
    err->public_text = "the object store cannot be used";
    err->retry_after_s = RETRY_S;
    return ERR_BUSY;
}

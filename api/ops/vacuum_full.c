#include "api/ops/vacuum_full.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/os.h"
#include "lib/io/pg.h"

#include <stddef.h>
#include <time.h>

/* Freeing fewer bytes is not worth the lock. */
#define LEAST_GAIN ((uint64_t)8 << 20)
/* For PostgreSQL's other files meanwhile, such as a segment of its log. With wal_level=minimal the
 * new table is not in the log. */
#define SPARE_BYTES ((uint64_t)16 << 20)

/* How long to wait for transactions that may still see deleted rows. */
enum { WAIT_S = 30 };

/* pg_column_size is the size as stored, compressed, and does not read it. 1024 is more than the
 * rest of a row and its index entries. */
static const char size_sql[] =
    "SELECT pg_total_relation_size('share') + pg_total_relation_size('share_comment'),"
    " (SELECT coalesce(sum(pg_column_size(summary) + pg_column_size(list_summary)"
    "  + pg_column_size(description) + pg_column_size(labels)), 0)::bigint + 1024 * count(*)"
    "  FROM share)"
    " + (SELECT coalesce(sum(pg_column_size(text) + coalesce(pg_column_size(view), 0)"
    "  + coalesce(pg_column_size(pin_function), 0)), 0)::bigint + 1024 * count(*)"
    "  FROM share_comment),"
    " pg_current_xact_id()::text";

/* VACUUM FULL also copies deleted rows that another transaction, such as that of a backup, may
 * still see. If no snapshot is older than transaction $1, these are only rows deleted since then.
 */
static const char snapshots_sql[] =
    "SELECT coalesce(max(age(backend_xmin)), 0) <= age($1::text::xid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()";

struct table_sizes {
    uint64_t table_bytes;
    uint64_t live_bytes;
    uint64_t free_bytes; /* free space of the disk */
    const char *transaction;
};

/* TOAST and page headers take less than an eighth. */
static uint64_t new_table_bytes(uint64_t live_bytes)
{
    return live_bytes + live_bytes / 8;
}

bool vacuum_full_is_useful(uint64_t table_bytes, uint64_t live_bytes)
{
    const uint64_t new_bytes = new_table_bytes(live_bytes);
    return table_bytes > new_bytes && table_bytes - new_bytes >= LEAST_GAIN &&
           table_bytes - new_bytes >= new_bytes;
}

bool vacuum_full_has_space(uint64_t live_bytes, uint64_t free_bytes)
{
    return free_bytes >= SPARE_BYTES && free_bytes - SPARE_BYTES >= new_table_bytes(live_bytes);
}

static enum err_code read_sizes(struct pg_connection *connection, const char *path,
                                struct arena *arena, struct table_sizes *ret_sizes, struct err *err)
{
    struct pg_result *row;
    uint64_t free_bytes, total_bytes;
    enum err_code code = pg_query(connection, PG_NO_TENANT, size_sql, NULL, 0, arena, &row, err);
    if (code)
        return code;
    if (os_free_bytes(path, &free_bytes, &total_bytes) != 0)
        return err_set_errno(err, ERR_IO, "reading the free space of the database's disk");
    *ret_sizes = (struct table_sizes){.table_bytes = (uint64_t)pg_get_i64(row, 0, 0),
                                      .live_bytes = (uint64_t)pg_get_i64(row, 0, 1),
                                      .free_bytes = free_bytes,
                                      .transaction = pg_get_text(row, 0, 2)};
    return ERR_NONE;
}

static void log_sizes(enum log_level level, const char *message, const struct table_sizes *sizes)
{
    log_event(level, message, "table_bytes=%llu live_bytes=%llu free_bytes=%llu",
              (unsigned long long)sizes->table_bytes, (unsigned long long)sizes->live_bytes,
              (unsigned long long)sizes->free_bytes);
}

static enum err_code wait_for_snapshots(struct pg_connection *connection, const char *transaction,
                                        struct arena *arena, struct err *err)
{
    const struct timespec second = {.tv_sec = 1};
    for (int i = 0; i < WAIT_S; i++) {
        struct pg_result *row;
        enum err_code code = pg_query_values(connection, PG_NO_TENANT, snapshots_sql, arena, &row,
                                             err, PG_TEXT(transaction));
        if (code || pg_get_bool(row, 0, 0))
            return code;
        nanosleep(&second, NULL);
    }
    return err_set(err, ERR_BUSY,
                   "a transaction, such as that of a backup, may still see deleted shares");
}

enum err_code vacuum_full_if_useful(struct pg_connection *connection, const char *path,
                                    struct err *err)
{
    arena_auto arena = arena_create();
    struct table_sizes sizes = {0};
    enum err_code code = read_sizes(connection, path, arena, &sizes, err);
    if (code || !vacuum_full_is_useful(sizes.table_bytes, sizes.live_bytes))
        return code;
    if (!vacuum_full_has_space(sizes.live_bytes, sizes.free_bytes)) {
        log_sizes(LOG_WARN,
                  "the disk is too full to return the space of deleted shares: VACUUM FULL needs "
                  "space to rewrite the remaining rows",
                  &sizes);
        return ERR_NONE;
    }
    code = wait_for_snapshots(connection, sizes.transaction, arena, err);
    if (!code)
        code = pg_maintain(connection, "VACUUM FULL share, share_comment", err);
    if (code)
        return code;
    uint64_t free_bytes, total_bytes;
    if (os_free_bytes(path, &free_bytes, &total_bytes) != 0)
        free_bytes = 0;
    log_event(LOG_INFO, "returned the space of deleted shares to the full disk",
              "free_bytes_before=%llu free_bytes=%llu", (unsigned long long)sizes.free_bytes,
              (unsigned long long)free_bytes);
    return ERR_NONE;
}

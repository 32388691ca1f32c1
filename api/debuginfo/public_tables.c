#include "api/debuginfo/public_tables.h"

#include "api/core/disk_part.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/debuginfo/build_id.h"
#include "api/debuginfo/debuginfo_parts.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum {
    WAITING_MAX = 1024,
    NOTED_SLOTS = 16384, /* tables that were used lately; two that share a slot are written more
                            often */
    NOTED_S = 3600,
    FREE_SHARE = 16,
};

struct noted {
    uint64_t hash;
    int64_t at_ns; /* 0: free */
};

struct public_tables {
    int64_t (*now_ns)(void);
    pthread_mutex_t mutex;
    char waiting[WAITING_MAX][BUILD_ID_BYTES];
    uint32_t count;
    struct noted noted[NOTED_SLOTS];
};

struct public_tables *public_tables_create(int64_t (*now_ns)(void))
{
    struct public_tables *tables = mem_new(struct public_tables, 1);
    tables->now_ns = now_ns;
    pthread_mutex_init(&tables->mutex, NULL);
    return tables;
}

void public_tables_destroy(struct public_tables *tables)
{
    if (!tables)
        return;
    pthread_mutex_destroy(&tables->mutex);
    mem_free(tables);
}

/* FNV-1a: a client that forces a collision only delays the note of a use. */
static uint64_t hash_of(const char *id)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *id; id++)
        hash = (hash ^ (uint8_t)*id) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

/* A use for which there is no space is noted by the next result. */
void public_tables_note_use(struct public_tables *tables, const char *build_id)
{
    const uint64_t hash = hash_of(build_id);
    const int64_t now_ns = tables->now_ns();
    struct noted *slot = &tables->noted[hash % NOTED_SLOTS];
    pthread_mutex_lock(&tables->mutex);
    const bool is_noted =
        slot->hash == hash && slot->at_ns && now_ns - slot->at_ns < NOTED_S * CLOCK_NS_PER_S;
    if (!is_noted && tables->count < WAITING_MAX) {
        *slot = (struct noted){.hash = hash, .at_ns = now_ns};
        memcpy(tables->waiting[tables->count++], build_id, strlen(build_id) + 1);
    }
    pthread_mutex_unlock(&tables->mutex);
}

const char *public_tables_take_uses(struct public_tables *tables, struct arena *arena)
{
    buf_auto ids;
    buf_init(&ids, (size_t)WAITING_MAX * BUILD_ID_BYTES + 2);
    pthread_mutex_lock(&tables->mutex);
    const uint32_t count = tables->count;
    for (uint32_t i = 0; i < count; i++)
        buf_printf(&ids, "%c%s", i ? ',' : '{', tables->waiting[i]);
    tables->count = 0;
    pthread_mutex_unlock(&tables->mutex);
    buf_append_byte(&ids, '}');
    return count ? arena_strndup(arena, ids.data, ids.size) : NULL;
}

/* Under the mutex. */
static void give_use(struct public_tables *tables, struct span id)
{
    char text[BUILD_ID_BYTES];
    memcpy(text, id.data, id.size);
    text[id.size] = '\0';
    const uint64_t hash = hash_of(text);
    struct noted *slot = &tables->noted[hash % NOTED_SLOTS];
    if (tables->count < WAITING_MAX)
        memcpy(tables->waiting[tables->count++], text, id.size + 1);
    else if (slot->hash == hash)
        slot->at_ns = 0;
}

void public_tables_give_uses(struct public_tables *tables, const char *build_ids)
{
    pthread_mutex_lock(&tables->mutex);
    for (const char *id = build_ids + 1; *id;) {
        const size_t size = strcspn(id, ",}");
        assert(size < BUILD_ID_BYTES);
        give_use(tables, span_of(id, size));
        id += size + 1;
    }
    pthread_mutex_unlock(&tables->mutex);
}

/* Rows that another server is updating are skipped: it writes a use, too. */
static enum err_code write_uses(struct server *server, const char *ids, struct arena *arena,
                                struct err *err)
{
    pg_auto connection = NULL;
    const enum err_code code = pg_take(server->jobs_database, &connection, err);
    if (code)
        return code;
    return pg_query_values(connection, PG_NO_TENANT,
                           "UPDATE symbol_table_public SET last_used_at = now() WHERE build_id IN"
                           " (SELECT build_id FROM symbol_table_public"
                           "  WHERE build_id = ANY ($1::text[]) FOR UPDATE SKIP LOCKED)",
                           arena, NULL, err, PG_TEXT(ids));
}

enum err_code public_tables_write_uses(struct server *server, struct err *err)
{
    arena_auto arena = arena_create();
    struct public_tables *tables = server->debuginfo->public_tables;
    const char *ids = public_tables_take_uses(tables, arena);
    if (!ids)
        return ERR_NONE;
    const enum err_code code = write_uses(server, ids, arena, err);
    if (code)
        public_tables_give_uses(tables, ids);
    return code;
}

static enum err_code is_full(struct pg_connection *connection, int64_t max_bytes,
                             struct arena *arena, bool *ret_is_full, struct err *err)
{
    struct pg_result *rows;
    const enum err_code code =
        pg_query_values(connection, PG_NO_TENANT,
                        "SELECT coalesce(sum(bytes), 0) > $1::bigint FROM symbol_table_public",
                        arena, &rows, err, PG_I64(max_bytes));
    *ret_is_full = !code && pg_get_bool(rows, 0, 0);
    return code;
}

static int64_t kept_bytes(const struct server *server)
{
    const int64_t max_bytes = (int64_t)disk_part_table_bytes(server);
    return max_bytes - max_bytes / FREE_SHARE;
}

enum err_code public_tables_check_size(const struct server *server, int64_t bytes, struct err *err)
{
    if (bytes <= kept_bytes(server))
        return ERR_NONE;
    return err_set(err, ERR_TOO_LARGE,
                   "its symbol table has %" PRId64 " bytes, and one may have %" PRId64
                   " (15/16 of --debuginfod-cache-bytes)",
                   bytes, kept_bytes(server));
}

enum err_code public_tables_free_space(const struct server *server,
                                       struct pg_connection *connection, struct arena *arena,
                                       struct err *err)
{
    const int64_t max_bytes = (int64_t)disk_part_table_bytes(server);
    bool has_too_many;
    const enum err_code code = is_full(connection, max_bytes, arena, &has_too_many, err);
    if (code || !has_too_many)
        return code;
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH ranked AS (SELECT build_id, sum(bytes) OVER"
        "  (ORDER BY last_used_at DESC, build_id) AS total FROM symbol_table_public)"
        " DELETE FROM symbol_table_public t USING ranked r"
        " WHERE t.build_id = r.build_id AND r.total > $1::bigint",
        arena, NULL, err, PG_I64(kept_bytes(server)));
}

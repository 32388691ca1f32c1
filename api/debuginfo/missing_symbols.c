#include "api/debuginfo/missing_symbols.h"

#include "api/core/server.h"
#include "api/debuginfo/build_id.h"
#include "api/debuginfo/debuginfo_parts.h"
#include "api/http/principal.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum {
    WAITING_MAX = 4096,
    BUCKETS = 256,                /* counters; a team uses that of its id modulo BUCKETS */
    BUCKET_MAX = WAITING_MAX / 4, /* one profile can lack the tables of thousands of binaries */
    NOTED_SLOTS =
        16384, /* binaries that were written lately; two that share a slot are written more often */
    NOTED_S = 300,
    TENANT_MAX =
        10000, /* binaries of one team; the ones that were needed longest ago are dropped */
    FILE_BYTES = BUILD_ID_FILE_CHARACTERS,
    JSON_MAX_BYTES = 8 << 20,
};

struct need {
    int64_t tenant_id;
    char id[BUILD_ID_BYTES];
    char file[FILE_BYTES + 1];
};

struct noted {
    uint64_t hash;
    int64_t at_ns; /* monotonic */
};

struct missing_symbols {
    pthread_mutex_t mutex;
    struct need waiting[WAITING_MAX];
    uint32_t count;
    uint32_t bucket_counts[BUCKETS]; /* waiting needs, by tenant_id % BUCKETS */
    struct noted noted[NOTED_SLOTS];
};

struct missing_symbols *missing_symbols_create(void)
{
    struct missing_symbols *needs = mem_new(struct missing_symbols, 1);
    pthread_mutex_init(&needs->mutex, NULL);
    return needs;
}

void missing_symbols_destroy(struct missing_symbols *needs)
{
    if (!needs)
        return;
    pthread_mutex_destroy(&needs->mutex);
    mem_free(needs);
}

/* FNV-1a: a client that forces a collision only suppresses a note for some minutes. */
static uint64_t hash_of(int64_t tenant_id, const char *id)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)tenant_id;
    for (; *id; id++)
        hash = (hash ^ (uint8_t)*id) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

/* The last FILE_BYTES of a path, without a truncated character and without the characters that JSON
 * in the database cannot contain. */
static void copy_file(struct span file, char ret_file[FILE_BYTES + 1])
{
    size_t skipped = file.size > FILE_BYTES ? file.size - FILE_BYTES : 0;
    while (skipped && skipped < file.size && (file.data[skipped] & 0xc0) == 0x80)
        skipped++;
    size_t size = file.size - skipped;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = file.data[skipped + i];
        ret_file[i] = (char)(byte < ' ' || byte == 0x7f ? '?' : byte);
    }
    ret_file[size] = '\0';
}

/* Called with the lock held. Returns whether the binary was noted now. */
static bool note_binary(struct missing_symbols *needs, int64_t tenant_id, const char *id,
                        struct span file, int64_t now_ns)
{
    const uint64_t hash = hash_of(tenant_id, id);
    struct noted *slot = &needs->noted[hash % NOTED_SLOTS];
    uint32_t *bucket_count = &needs->bucket_counts[(uint64_t)tenant_id % BUCKETS];
    if (needs->count == WAITING_MAX || *bucket_count == BUCKET_MAX ||
        (slot->hash == hash && slot->at_ns && now_ns - slot->at_ns < NOTED_S * CLOCK_NS_PER_S))
        return false;
    *slot = (struct noted){.hash = hash, .at_ns = now_ns};
    struct need *need = &needs->waiting[needs->count++];
    (*bucket_count)++;
    need->tenant_id = tenant_id;
    memcpy(need->id, id, strlen(id) + 1);
    copy_file(file, need->file);
    return true;
}

uint32_t missing_symbols_note(struct server *server, int64_t tenant_id,
                              const struct build_id_binary *binaries, uint32_t count)
{
    struct missing_symbols *needs = server->debuginfo->missing_symbols;
    const int64_t now_ns = clock_monotonic_ns();
    char id[BUILD_ID_BYTES];
    uint32_t noted = 0;
    pthread_mutex_lock(&needs->mutex);
    for (uint32_t i = 0; i < count; i++)
        if (build_id_normalize(binaries[i].build_id, id))
            noted += note_binary(needs, tenant_id, id, binaries[i].file, now_ns);
    pthread_mutex_unlock(&needs->mutex);
    return noted;
}

/* ---- writing ---- */

static struct need *take_waiting(struct missing_symbols *needs, struct arena *arena,
                                 uint32_t *ret_count)
{
    pthread_mutex_lock(&needs->mutex);
    struct need *taken = arena_new_raw(arena, struct need, needs->count);
    memcpy(taken, needs->waiting, needs->count * sizeof(*taken));
    *ret_count = needs->count;
    needs->count = 0;
    memset(needs->bucket_counts, 0, sizeof(needs->bucket_counts));
    pthread_mutex_unlock(&needs->mutex);
    return taken;
}

/* For each team in needs that has more than TENANT_MAX rows, deletes the rows whose last_at is the
 * oldest: a report needed the newer ones more recently. */
static enum err_code drop_oldest(struct pg_connection *connection, const struct buf *needs,
                                 struct arena *arena, struct err *err)
{
    return pg_query_values(
        connection, PG_NO_TENANT,
        "WITH crowded AS (SELECT tenant_id FROM symbol_need WHERE tenant_id IN"
        "   (SELECT t FROM json_to_recordset($1::json) AS a (t bigint))"
        "  GROUP BY tenant_id HAVING count(*) > $2),"
        " ranked AS (SELECT n.ctid AS row, row_number() OVER (PARTITION BY tenant_id"
        "   ORDER BY last_at DESC) AS rank FROM symbol_need n JOIN crowded USING (tenant_id))"
        " DELETE FROM symbol_need WHERE ctid IN (SELECT row FROM ranked WHERE rank > $2)",
        arena, NULL, err, PG_SPAN(buf_span(needs)), PG_I64(TENANT_MAX));
}

enum err_code missing_symbols_write(struct server *server, struct err *err)
{
    arena_auto arena = arena_create();
    buf_auto json;
    buf_init(&json, JSON_MAX_BYTES);
    uint32_t count;
    const struct need *taken = take_waiting(server->debuginfo->missing_symbols, arena, &count);
    if (count == 0)
        return ERR_NONE;
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(&json, "%c{\"t\":%" PRId64 ",\"b\":\"%s\",\"f\":", i ? ',' : '[',
                   taken[i].tenant_id, taken[i].id);
        buf_append_json(&json, span_text(taken[i].file));
        buf_append_byte(&json, '}');
    }
    buf_append_byte(&json, ']');
    if (buf_failed(&json))
        return err_set(err, ERR_TOO_LARGE, "noting binaries without names: too many at once");
    pg_auto connection = NULL;
    enum err_code code = pg_take(server->jobs_database, &connection, err);
    if (!code)
        code = pg_query_values(
            connection, PG_NO_TENANT,
            "WITH requested AS (SELECT * FROM json_to_recordset($1::json) AS a (t bigint, b text,"
            "  f text)),"
            " held AS (SELECT id FROM tenant WHERE id IN (SELECT t FROM requested)"
            "  ORDER BY id FOR KEY SHARE SKIP LOCKED),"
            " fit AS (SELECT DISTINCT ON (t, b) t, b, f FROM requested JOIN held ON id = t"
            "  ORDER BY t, b)"
            " INSERT INTO symbol_need (tenant_id, build_id, file, next_try_at)"
            " SELECT t, b, left(f, $2), CASE WHEN $3 THEN now() END FROM fit"
            " ON CONFLICT (tenant_id, build_id) DO UPDATE SET last_at = now(), next_try_at ="
            " CASE WHEN symbol_need.reason = '' AND $3 THEN coalesce(symbol_need.next_try_at, "
            "now())"
            "  ELSE symbol_need.next_try_at END,"
            " file = CASE WHEN excluded.file <> '' THEN excluded.file ELSE symbol_need.file END",
            arena, NULL, err, PG_SPAN(buf_span(&json)), PG_I64(BUILD_ID_FILE_CHARACTERS),
            PG_BOOL(server->debuginfo->client != NULL));
    if (!code)
        code = drop_oldest(connection, &json, arena, err);
    return code ? err_add(err, "noting binaries without names") : ERR_NONE;
}

#include "api/debuginfo/symbol_tables.h"

#include "api/core/disk.h"
#include "api/core/integrity.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/debuginfo/build_id.h"
#include "api/debuginfo/debuginfo_parts.h"
#include "api/debuginfo/debuginfo_table.h"
#include "api/debuginfo/missing_symbols.h"
#include "api/debuginfo/public_tables.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "lib/symbols/symbol_pack.h"
#include "lib/symbols/symbol_table.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* A team has the slot of its id; active teams that share one query the database more often. */
    GENERATION_SLOTS = 1024,
    FOUND_MAX_BYTES = 24 << 20,   /* holds the binaries of the largest profile and more */
    OPENED_MIN_BYTES = 256 << 10, /* so that at most 16,384 tables are open */
    KEY_BYTES = BUILD_ID_BYTES + 64,
    DAMAGED_RETRY_S = 300,         /* a damaged object may be restored while the server runs */
    REFUSED_RETRY_S = 5,           /* the disk may have space again */
    LIGHT_UNPACK_BYTES = 16 << 20, /* the size that each thread may unpack at any time */
};

/* The row for one team's build id in one generation. */
struct found {
    char object_key[OBJECT_KEY_MAX_BYTES + 1]; /* "": no table */
    uint64_t bytes;
    uint8_t sha256[DIGEST_BYTES];
    bool is_public;
    bool is_good;
};

struct opened {
    char key[OBJECT_KEY_MAX_BYTES + 1];
    struct symbol_table *table; /* NULL: damaged, lost or refused */
    bool is_refused;            /* the disk had no space for it */
    int64_t failed_ns;          /* set when it failed, monotonic */
};

struct generation {
    int64_t tenant_id; /* 0: free */
    uint64_t number;
    int64_t queried_ns; /* monotonic; 0: query again */
};

/* A time in which a team's requests do without tables because the disk had no space for them. */
struct shortage {
    uint64_t count; /* of shortages, with the present one */
    int64_t end_ns; /* of the latest, monotonic */
};

struct symbol_tables {
    struct flight_cache *found;
    struct flight_cache *opened;
    pthread_mutex_t mutex; /* guards generations and shortages */
    struct generation generations[GENERATION_SLOTS];
    struct shortage shortages[GENERATION_SLOTS]; /* teams that share a slot share its shortages */
    pthread_mutex_t unpacking;                   /* held while a large table is unpacked */
};

static void destroy_found(void *value)
{
    mem_free(value);
}

static void destroy_opened(void *value)
{
    struct opened *opened = value;
    symbol_table_close(opened->table);
    mem_free(opened);
}

struct symbol_tables *symbol_tables_create(void)
{
    struct symbol_tables *tables = mem_new(struct symbol_tables, 1);
    tables->found = flight_cache_create(FOUND_MAX_BYTES, destroy_found);
    tables->opened = flight_cache_create(SYMBOL_TABLES_MAPPED_BYTES, destroy_opened);
    pthread_mutex_init(&tables->mutex, NULL);
    pthread_mutex_init(&tables->unpacking, NULL);
    return tables;
}

void symbol_tables_destroy(struct symbol_tables *tables)
{
    if (!tables)
        return;
    flight_cache_destroy(tables->found);
    flight_cache_destroy(tables->opened);
    pthread_mutex_destroy(&tables->mutex);
    pthread_mutex_destroy(&tables->unpacking);
    mem_free(tables);
}

/* ---- generations ---- */

static enum err_code query_generation(struct server *server, int64_t tenant_id,
                                      uint64_t *ret_number, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *rows;
    enum err_code code = pg_take(server->database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, tenant_id,
                           "SELECT generation + coalesce((SELECT generation FROM"
                           " symbol_generation WHERE tenant_id = $1), 0)"
                           " FROM symbol_generation_public",
                           arena, &rows, err, PG_I64(tenant_id));
    if (code)
        return code;
    *ret_number = (uint64_t)pg_get_i64(rows, 0, 0);
    return ERR_NONE;
}

static struct generation *generation_of(struct symbol_tables *tables, int64_t tenant_id)
{
    return &tables->generations[(uint64_t)tenant_id % GENERATION_SLOTS];
}

uint64_t symbol_tables_generation(struct server *server, int64_t tenant_id)
{
    struct symbol_tables *tables = server->debuginfo->symbol_tables;
    struct generation *slot = generation_of(tables, tenant_id);
    const int64_t now_ns = clock_monotonic_ns();
    uint64_t number = 1;
    struct err ignored;
    pthread_mutex_lock(&tables->mutex);
    if (slot->tenant_id == tenant_id)
        number = slot->number;
    const bool is_fresh = slot->tenant_id == tenant_id && slot->queried_ns &&
                          now_ns - slot->queried_ns < CLOCK_NS_PER_S;
    if (!is_fresh && slot->tenant_id == tenant_id)
        slot->queried_ns = now_ns; /* one thread queries, others continue with the known number */
    pthread_mutex_unlock(&tables->mutex);
    if (is_fresh || query_generation(server, tenant_id, &number, &ignored))
        return number;
    pthread_mutex_lock(&tables->mutex);
    if (slot->tenant_id != tenant_id)
        *slot = (struct generation){.tenant_id = tenant_id, .number = number, .queried_ns = now_ns};
    else if (slot->number < number)
        slot->number = number;
    number = slot->number;
    pthread_mutex_unlock(&tables->mutex);
    return number;
}

bool symbol_tables_learn_generation(struct server *server, int64_t tenant_id, uint64_t number)
{
    struct symbol_tables *tables = server->debuginfo->symbol_tables;
    struct generation *slot = generation_of(tables, tenant_id);
    pthread_mutex_lock(&tables->mutex);
    const bool is_news = slot->tenant_id == tenant_id && slot->number < number;
    if (is_news)
        slot->number = number;
    pthread_mutex_unlock(&tables->mutex);
    return is_news;
}

void symbol_tables_forget(struct server *server, int64_t tenant_id)
{
    struct symbol_tables *tables = server->debuginfo->symbol_tables;
    struct generation *slot = generation_of(tables, tenant_id);
    pthread_mutex_lock(&tables->mutex);
    if (slot->tenant_id == tenant_id)
        slot->queried_ns = 0;
    pthread_mutex_unlock(&tables->mutex);
}

/* ---- shortages of space ---- */

static struct shortage *shortage_of(struct symbol_tables *tables, int64_t tenant_id)
{
    return &tables->shortages[(uint64_t)tenant_id % GENERATION_SLOTS];
}

/* Called for each use of a refused table. */
static void note_shortage(struct symbol_tables *tables, int64_t tenant_id)
{
    struct shortage *shortage = shortage_of(tables, tenant_id);
    const int64_t now_ns = clock_monotonic_ns();
    pthread_mutex_lock(&tables->mutex);
    if (now_ns >= shortage->end_ns)
        *shortage = (struct shortage){.count = shortage->count + 1,
                                      .end_ns = now_ns + REFUSED_RETRY_S * CLOCK_NS_PER_S};
    pthread_mutex_unlock(&tables->mutex);
}

/* A shortage changes the version when it begins and when it ends. So a result that lacks names is
 * cached under a version that is no longer the present one when the shortage has ended: the version
 * was read either during the shortage or before it began. */
uint64_t symbol_tables_version(struct server *server, int64_t tenant_id)
{
    enum { SHORTAGE_BITS = 24 };
    struct symbol_tables *tables = server->debuginfo->symbol_tables;
    const struct shortage *shortage = shortage_of(tables, tenant_id);
    const uint64_t generation = symbol_tables_generation(server, tenant_id);
    const int64_t now_ns = clock_monotonic_ns();
    pthread_mutex_lock(&tables->mutex);
    const uint64_t changes = 2 * shortage->count - (now_ns < shortage->end_ns);
    pthread_mutex_unlock(&tables->mutex);
    return (generation << SHORTAGE_BITS) + changes;
}

/* ---- tables ---- */

static void found_key(int64_t tenant_id, uint64_t generation, const char *id,
                      char ret_key[KEY_BYTES])
{
    snprintf(ret_key, KEY_BYTES, "%" PRId64 ".%" PRIu64 ".%s", tenant_id, generation, id);
}

struct search {
    struct server *server;
    int64_t tenant_id;
    const char *id;
};

/* ids are an array in PostgreSQL's form: {…,…}. One row for each. */
static enum err_code query_tables(struct server *server, int64_t tenant_id, struct span ids,
                                  struct arena *arena, struct pg_result **ret_rows, struct err *err)
{
    pg_auto connection = NULL;
    const enum err_code code = pg_take(server->database, &connection, err);
    if (code)
        return code;
    return pg_query_values(
        connection, tenant_id,
        "SELECT requested.id, best.object_key, best.is_public, best.quality, best.bytes, "
        "best.sha256"
        " FROM unnest($2::text[]) AS requested (id) LEFT JOIN LATERAL"
        " (SELECT object_key, false AS is_public, quality_rank, quality, bytes, sha256"
        "   FROM symbol_table WHERE tenant_id = $1 AND build_id = requested.id"
        "   AND NOT object_is_damaged(object_key) UNION ALL"
        "  SELECT object_key, true, quality_rank, quality, bytes, sha256 FROM symbol_table_public"
        "   WHERE build_id = requested.id AND NOT object_is_damaged(object_key)"
        "  ORDER BY quality_rank DESC, is_public LIMIT 1) AS best ON true",
        arena, ret_rows, err, PG_I64(tenant_id), PG_SPAN(ids));
}

static struct found *read_found(const struct pg_result *rows, int row)
{
    struct found *found = mem_new(struct found, 1);
    if (pg_is_null(rows, row, 1))
        return found;
    snprintf(found->object_key, sizeof(found->object_key), "%s", pg_get_text(rows, row, 1));
    found->is_public = pg_get_bool(rows, row, 2);
    found->is_good = symbol_tables_is_good(pg_get_i64(rows, row, 3));
    found->bytes = (uint64_t)pg_get_i64(rows, row, 4);
    const struct span sha256 = pg_get_bytes(rows, row, 5);
    memcpy(found->sha256, sha256.data, sha256.size < DIGEST_BYTES ? sha256.size : DIGEST_BYTES);
    return found;
}

static enum err_code find_table(void *context, void **ret_value, size_t *ret_bytes, struct err *err)
{
    const struct search *search = context;
    arena_auto arena = arena_create();
    struct pg_result *rows;
    const char *ids = arena_printf(arena, "{%s}", search->id);
    const enum err_code code =
        query_tables(search->server, search->tenant_id, span_text(ids), arena, &rows, err);
    if (code)
        return code;
    *ret_value = read_found(rows, 0);
    *ret_bytes = sizeof(struct found);
    return ERR_NONE;
}

struct opening {
    struct server *server;
    struct integrity_object object;
};

/* Unnamed files of unpacked tables take at most this part of the disk. When the disk has no space
 * for another one, the limit is half of what they take, but a quarter of the usual one at least:
 * tables that are used often stay open. */
static void limit_opened(const struct opening *opening, bool is_full)
{
    enum { DISK_SHARE = 8, LEAST_SHARE = 4, LEAST_BYTES = 16 << 20 };
    struct flight_cache *opened = opening->server->debuginfo->symbol_tables->opened;
    const uint64_t share = disk_total_bytes(opening->server->disk) / DISK_SHARE;
    uint64_t most = share < SYMBOL_TABLES_MAPPED_BYTES ? share : SYMBOL_TABLES_MAPPED_BYTES;
    const uint64_t least = most / LEAST_SHARE > LEAST_BYTES ? most / LEAST_SHARE : LEAST_BYTES;
    if (is_full && flight_cache_bytes(opened) / 2 < most)
        most = flight_cache_bytes(opened) / 2;
    flight_cache_set_max_bytes(opened, (size_t)(most > least ? most : least));
}

/* Readers of profiles must not use up the reserve of the disk, which deletions need. */
static enum err_code unpack(const struct opening *opening, int packed_fd, int table_fd,
                            struct err *err)
{
    buf_auto table;
    buf_init(&table, DEBUGINFO_TABLE_MAX_BYTES);
    enum err_code code = symbol_unpack_fd(packed_fd, &table, err);
    if (code)
        return code;
    code = disk_allocate(opening->server->disk, table_fd, table.size, 1, err);
    if (!code && os_write_all(table_fd, table.data, table.size) != 0)
        code = err_set_errno(err, ERR_IO, "writing an unpacked symbol table");
    return code;
}

/* One large table at a time. The memory gate is not used: a caller that needs names may hold a part
 * of it, and two of them could wait for each other. The unpacking thread waits for nothing. */
static enum err_code unpack_large(const struct opening *opening, int packed_fd, int table_fd,
                                  struct err *err)
{
    struct symbol_tables *tables = opening->server->debuginfo->symbol_tables;
    const bool is_light = symbol_unpack_fd_bytes(packed_fd) <= LIGHT_UNPACK_BYTES;
    if (!is_light)
        pthread_mutex_lock(&tables->unpacking);
    const enum err_code code = unpack(opening, packed_fd, table_fd, err);
    if (!is_light)
        pthread_mutex_unlock(&tables->unpacking);
    return code;
}

static enum err_code create_file(const struct opening *opening, int *ret_fd, struct err *err)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/objects", opening->server->settings->data_dir);
    *ret_fd = os_openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR, 0600);
    return *ret_fd < 0 ? err_set_errno(err, ERR_IO, "creating a file in the objects folder")
                       : ERR_NONE;
}

/* An object of a bucket is copied to the disk. A table whose copy has no space is refused like one
 * that has none itself; see api/core/disk.h for the space that copies leave. */
static enum err_code open_object(const struct opening *opening, int *ret_fd, struct err *err)
{
    struct server *server = opening->server;
    const uint64_t bytes = opening->object.bytes, reserve = disk_min_free_bytes(server->disk);
    if (object_store_makes_copies(server->objects) &&
        (disk_look_free_bytes(server->disk) < reserve + 2 * bytes ||
         !disk_has_space_for_copy(server->disk, bytes, false)))
        return err_set(err, ERR_LIMIT, "the server's disk has no space for a copy of the table");
    return integrity_open(server, &opening->object, ret_fd, err);
}

/* Unpacks a stored table into an unnamed file of this server, so that pages which are not read need
 * no memory. */
static enum err_code unpack_object(const struct opening *opening, int *fd, struct err *err)
{
    fd_auto table_fd = -1;
    enum err_code code = create_file(opening, &table_fd, err);
    if (!code)
        code = unpack_large(opening, *fd, table_fd, err);
    if (code)
        return code;
    os_close(*fd);
    *fd = table_fd;
    table_fd = -1;
    return ERR_NONE;
}

static bool is_packed(int fd)
{
    uint8_t bytes[8];
    const ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
    return size > 0 && symbol_pack_is(span_of(bytes, (size_t)size));
}

static enum err_code read_table(const struct opening *opening, struct symbol_table **ret_table,
                                struct err *err)
{
    fd_auto fd = -1;
    enum err_code code = open_object(opening, &fd, err);
    if (code)
        return code;
    code = integrity_verify(opening->server, &opening->object, fd, err);
    if (code)
        return code;
    if (is_packed(fd))
        code = unpack_object(opening, &fd, err);
    if (!code)
        code = symbol_table_open_fd(fd, ret_table, err);
    if (!code || code == ERR_IO || code == ERR_LIMIT)
        return code;
    err->code = ERR_CORRUPT; /* the bytes match the digest, but are not a valid table */
    integrity_report(opening->server, &opening->object, err);
    return ERR_CORRUPT;
}

/* Queries continue without the names of a table that is damaged or lost, or for which the disk has
 * no space now. */
static enum err_code open_table(void *context, void **ret_value, size_t *ret_bytes, struct err *err)
{
    const struct opening *opening = context;
    struct symbol_table *table = NULL;
    const enum err_code code = read_table(opening, &table, err);
    limit_opened(opening, code == ERR_LIMIT);
    if (code && code != ERR_CORRUPT && code != ERR_LOST && code != ERR_LIMIT)
        return code;
    struct opened *opened = mem_new(struct opened, 1);
    snprintf(opened->key, sizeof(opened->key), "%s", opening->object.key);
    opened->table = table;
    opened->is_refused = code == ERR_LIMIT;
    opened->failed_ns = code ? clock_monotonic_ns() : 0;
    *ret_value = opened;
    /* An open table is a mapping, of which a process may have 65,530 (vm.max_map_count), so a small
     * table counts as a larger one. */
    const size_t bytes = table ? (size_t)symbol_table_sizes(table).bytes : 0;
    *ret_bytes = table && bytes < OPENED_MIN_BYTES ? OPENED_MIN_BYTES : bytes + sizeof(*opened);
    return ERR_NONE;
}

static bool is_retried(const struct opened *opened)
{
    const int64_t retry_s = opened->is_refused ? REFUSED_RETRY_S : DAMAGED_RETRY_S;
    return !opened->table && clock_monotonic_ns() - opened->failed_ns > retry_s * CLOCK_NS_PER_S;
}

static enum err_code ref_opened(const struct opening *opening, struct flight_entry **ret_entry,
                                struct err *err)
{
    struct flight_cache *cache = opening->server->debuginfo->symbol_tables->opened;
    struct opening wanted = *opening;
    enum err_code code =
        flight_cache_ref(cache, opening->object.key, open_table, &wanted, ret_entry, err);
    if (code || !is_retried(flight_cache_get(*ret_entry)))
        return code;
    flight_cache_unref(*ret_entry);
    flight_cache_forget(cache, opening->object.key);
    return flight_cache_ref(cache, opening->object.key, open_table, &wanted, ret_entry, err);
}

static enum err_code ref_object(struct server *server, const struct search *search,
                                const struct found *found, struct symbol_tables_ref *ret_ref,
                                struct err *err)
{
    const struct opening opening = {
        .server = server,
        .object = {.kind = found->is_public ? INTEGRITY_TABLE_PUBLIC : INTEGRITY_TABLE,
                   .tenant_id = search->tenant_id,
                   .row = search->id,
                   .key = found->object_key,
                   .bytes = found->bytes,
                   .sha256 = span_of(found->sha256, DIGEST_BYTES)}};
    struct flight_entry *entry;
    enum err_code code = ref_opened(&opening, &entry, err);
    if (code)
        return code;
    const struct opened *opened = flight_cache_get(entry);
    if (found->is_public)
        public_tables_note_use(server->debuginfo->public_tables, search->id);
    if (opened->is_refused)
        note_shortage(server->debuginfo->symbol_tables, search->tenant_id);
    *ret_ref = (struct symbol_tables_ref){.table = opened->table,
                                          .key = opened->key,
                                          .is_public = found->is_public,
                                          .is_refused = opened->is_refused,
                                          .entry = entry};
    return ERR_NONE;
}

static enum err_code ref_found(struct server *server, const struct search *search,
                               const char *found_key, struct symbol_tables_ref *ret_ref,
                               struct err *err)
{
    struct flight_cache *cache = server->debuginfo->symbol_tables->found;
    struct flight_entry *entry;
    struct search wanted = *search;
    enum err_code code = flight_cache_ref(cache, found_key, find_table, &wanted, &entry, err);
    if (code)
        return code;
    const struct found *found = flight_cache_get(entry);
    const struct build_id_binary binary = {.build_id = span_text(search->id)};
    if (*found->object_key)
        code = ref_object(server, search, found, ret_ref, err);
    if (*found->object_key && !found->is_good)
        (void)missing_symbols_note(server, search->tenant_id, &binary, 1);
    if (code == ERR_NOT_FOUND)
        flight_cache_forget(cache, found_key);
    flight_cache_unref(entry);
    return code;
}

enum err_code symbol_tables_has(struct server *server, int64_t tenant_id, struct span build_id,
                                bool *ret_has, struct err *err)
{
    char id[BUILD_ID_BYTES], key[KEY_BYTES];
    *ret_has = false;
    if (!build_id_normalize(build_id, id))
        return ERR_NONE;
    found_key(tenant_id, symbol_tables_generation(server, tenant_id), id, key);
    struct search search = {.server = server, .tenant_id = tenant_id, .id = id};
    struct flight_entry *entry;
    const enum err_code code = flight_cache_ref(server->debuginfo->symbol_tables->found, key,
                                                find_table, &search, &entry, err);
    if (code)
        return code;
    const struct found *found = flight_cache_get(entry);
    const struct build_id_binary binary = {.build_id = span_text(id)};
    *ret_has = *found->object_key;
    if (*ret_has && !found->is_good)
        (void)missing_symbols_note(server, tenant_id, &binary, 1);
    flight_cache_unref(entry);
    return ERR_NONE;
}

enum err_code symbol_tables_ref(struct server *server, int64_t tenant_id, struct span build_id,
                                struct symbol_tables_ref *ret_ref, struct err *err)
{
    char id[BUILD_ID_BYTES], key[KEY_BYTES];
    *ret_ref = (struct symbol_tables_ref){0};
    if (!build_id_normalize(build_id, id))
        return ERR_NONE;
    found_key(tenant_id, symbol_tables_generation(server, tenant_id), id, key);
    const struct search search = {.server = server, .tenant_id = tenant_id, .id = id};
    enum err_code code = ref_found(server, &search, key, ret_ref, err);
    /* The table was replaced after this process read the row: read the row again. */
    if (code == ERR_NOT_FOUND)
        code = ref_found(server, &search, key, ret_ref, err);
    return code == ERR_NOT_FOUND ? ERR_NONE : code;
}

bool symbol_tables_is_refused(struct server *server, int64_t tenant_id, const char *id)
{
    struct symbol_tables *tables = server->debuginfo->symbol_tables;
    char key[KEY_BYTES];
    struct err full;
    bool is_refused = false;
    found_key(tenant_id, symbol_tables_generation(server, tenant_id), id, key);
    struct flight_entry *row = flight_cache_try(tables->found, key);
    const struct found *found = row ? flight_cache_get(row) : NULL;
    struct flight_entry *entry = found ? flight_cache_try(tables->opened, found->object_key) : NULL;
    if (entry) {
        const struct opened *opened = flight_cache_get(entry);
        is_refused = opened->is_refused &&
                     (!is_retried(opened) || disk_check(server->disk, &full) != ERR_NONE);
    }
    flight_cache_unref(entry);
    flight_cache_unref(row);
    return is_refused;
}

/* Appends the ids from *at on that are not cached yet: {…,…}, SYMBOL_TABLES_PREPARE_MAX at most.
 * Returns their number, and sets *at to the first one that was not looked at. */
static uint32_t list_unknown(struct flight_cache *found, int64_t tenant_id, uint64_t generation,
                             const struct build_id_binary *binaries, uint32_t count, uint32_t *at,
                             struct buf *ids)
{
    char id[BUILD_ID_BYTES], key[KEY_BYTES];
    uint32_t unknown = 0;
    buf_clear(ids);
    buf_append_byte(ids, '{');
    for (; *at < count && unknown < SYMBOL_TABLES_PREPARE_MAX; ++*at) {
        if (!build_id_normalize(binaries[*at].build_id, id))
            continue;
        found_key(tenant_id, generation, id, key);
        struct flight_entry *known = flight_cache_try(found, key);
        if (!known)
            buf_printf(ids, "%s%s", unknown++ ? "," : "", id);
        flight_cache_unref(known);
    }
    buf_append_byte(ids, '}');
    return unknown;
}

enum err_code symbol_tables_prepare(struct server *server, int64_t tenant_id,
                                    const struct build_id_binary *binaries, uint32_t count,
                                    struct err *err)
{
    struct flight_cache *found = server->debuginfo->symbol_tables->found;
    const uint64_t generation = symbol_tables_generation(server, tenant_id);
    enum err_code code = ERR_NONE;
    buf_auto ids;
    buf_init(&ids, (size_t)SYMBOL_TABLES_PREPARE_MAX * BUILD_ID_BYTES + 2);
    for (uint32_t at = 0; at < count && !code;) {
        arena_auto arena = arena_create();
        struct pg_result *rows;
        if (list_unknown(found, tenant_id, generation, binaries, count, &at, &ids) < 2)
            continue;
        code = query_tables(server, tenant_id, buf_span(&ids), arena, &rows, err);
        for (int row = 0; !code && row < pg_row_count(rows); row++) {
            char key[KEY_BYTES];
            found_key(tenant_id, generation, pg_get_text(rows, row, 0), key);
            flight_cache_give(found, key, read_found(rows, row), sizeof(struct found));
        }
    }
    return code;
}

void symbol_tables_forget_opened(struct server *server, const struct symbol_tables_ref *ref)
{
    flight_cache_forget(server->debuginfo->symbol_tables->opened, ref->key);
}

void symbol_tables_unref(struct symbol_tables_ref *ref)
{
    flight_cache_unref(ref->entry);
    *ref = (struct symbol_tables_ref){0};
}

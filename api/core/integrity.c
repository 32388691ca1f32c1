#include "api/core/integrity.h"

#include "api/core/metrics.h"
#include "api/core/object_store_setup.h"
#include "api/core/server.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    PIECE_BYTES = 256 << 10,
    RANGE_BYTES = 4 << 20,
    VERIFIED_COUNT = 256,
    VERIFIED_S = 600,
    LISTED_COUNT = 64,
    LISTED_S = 60
};

static const char *const kind_names[INTEGRITY_KIND_COUNT] = {
    [INTEGRITY_SHARE] = "share",
    [INTEGRITY_PART] = "part",
    [INTEGRITY_DEBUG_FILE] = "debug_file",
    [INTEGRITY_TABLE] = "symbol_table",
    [INTEGRITY_TABLE_PUBLIC] = "public_symbol_table",
    [INTEGRITY_SEGMENT] = "segment",
    [INTEGRITY_BLOCK] = "block",
};

const char *integrity_kind_name(enum integrity_kind kind)
{
    return kind_names[kind];
}

/* A file whose digest was compared. Any write to it changes at least one of these fields. */
struct verified {
    char key[OBJECT_KEY_MAX_BYTES + 1];
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified;
    struct timespec changed;
    int64_t verified_ns; /* monotonic */
};

/* A problem that was written to object_problem. */
struct listed {
    char key[OBJECT_KEY_MAX_BYTES + 1];
    int64_t listed_ns; /* monotonic */
};

struct integrity {
    struct metric *damaged[INTEGRITY_KIND_COUNT];
    struct metric *lost[INTEGRITY_KIND_COUNT];
    pthread_mutex_t mutex; /* guards the members below */
    struct verified verified[VERIFIED_COUNT];
    size_t next; /* the oldest entry */
    struct listed listed[LISTED_COUNT];
    size_t next_listed;
};

struct integrity *integrity_create(struct metrics *metrics)
{
    struct integrity *integrity = mem_new(struct integrity, 1);
    pthread_mutex_init(&integrity->mutex, NULL);
    for (int i = 0; i < INTEGRITY_KIND_COUNT; i++) {
        char labels[64];
        snprintf(labels, sizeof(labels), "kind=\"%s\"", kind_names[i]);
        integrity->damaged[i] =
            metrics_counter(metrics, "perfolio_objects_damaged_total", labels,
                            "Reads of stored objects whose size or digest was wrong.");
        integrity->lost[i] =
            metrics_counter(metrics, "perfolio_objects_lost_total", labels,
                            "Reads of objects that the database names and the store lacks.");
    }
    return integrity;
}

void integrity_destroy(struct integrity *integrity)
{
    if (!integrity)
        return;
    pthread_mutex_destroy(&integrity->mutex);
    mem_free(integrity);
}

/* Whether the object may be entered in the list now: at most once in LISTED_S, since many requests
 * may read it. */
static bool is_to_be_listed(struct integrity *integrity, const char *key)
{
    const int64_t now_ns = clock_monotonic_ns();
    bool is_recent = false;
    pthread_mutex_lock(&integrity->mutex);
    for (size_t i = 0; i < LISTED_COUNT && !is_recent; i++)
        is_recent = strcmp(integrity->listed[i].key, key) == 0 &&
                    now_ns - integrity->listed[i].listed_ns < LISTED_S * CLOCK_NS_PER_S;
    if (!is_recent) {
        struct listed *listed = &integrity->listed[integrity->next_listed];
        integrity->next_listed = (integrity->next_listed + 1) % LISTED_COUNT;
        snprintf(listed->key, sizeof(listed->key), "%s", key);
        listed->listed_ns = now_ns;
    }
    pthread_mutex_unlock(&integrity->mutex);
    return !is_recent;
}

/* If this fails, the scrub finds the object later. */
static void list_problem(struct server *server, const struct integrity_object *object,
                         const struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *rows;
    struct err ignored;
    if (!is_to_be_listed(server->integrity, object->key) ||
        pg_take(server->jobs_database, &connection, &ignored))
        return;
    (void)!pg_query_values(
        connection, PG_NO_TENANT,
        "INSERT INTO object_problem (object_key, kind, problem, tenant, detail)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (object_key) DO UPDATE SET"
        " problem = excluded.problem, detail = excluded.detail, seen_at = now()",
        arena, &rows, &ignored, PG_TEXT(object->key), PG_TEXT(kind_names[object->kind]),
        PG_TEXT(err->code == ERR_LOST ? "missing" : "broken"),
        object->tenant_id ? PG_I64(object->tenant_id) : PG_NULL, PG_TEXT(err->message));
}

void integrity_report(struct server *server, const struct integrity_object *object,
                      const struct err *err)
{
    const bool is_lost = err->code == ERR_LOST;
    char text[ERR_MESSAGE_BYTES * 2];
    struct integrity *integrity = server->integrity;
    metric_add(is_lost ? integrity->lost[object->kind] : integrity->damaged[object->kind], 1);
    log_event(LOG_ERROR, is_lost ? "a stored object is lost" : "a stored object is damaged",
              "kind=%s object=%s tenant=%" PRId64 " error=%s", kind_names[object->kind],
              object->key, object->tenant_id, log_quote(err->message, text, sizeof(text)));
    list_problem(server, object, err);
}

static enum err_code fail_damaged(struct server *server, const struct integrity_object *object,
                                  const char *what, struct err *err)
{
    err_set(err, ERR_CORRUPT, "object %s is damaged: %s", object->key, what);
    integrity_report(server, object, err);
    return ERR_CORRUPT;
}

/* ---- opening ---- */

static const char *const row_queries[INTEGRITY_KIND_COUNT] = {
    [INTEGRITY_SHARE] = "SELECT EXISTS (SELECT FROM share WHERE id = $1 AND object_key = $2"
                        " AND state = 'live')",
    [INTEGRITY_PART] = "SELECT EXISTS (SELECT FROM upload_part WHERE upload_id = $1"
                       " AND object_key = $2)",
    [INTEGRITY_DEBUG_FILE] = "SELECT EXISTS (SELECT FROM debug_file WHERE build_id = $1"
                             " AND object_key = $2)",
    [INTEGRITY_TABLE] = "SELECT EXISTS (SELECT FROM symbol_table WHERE build_id = $1"
                        " AND object_key = $2)",
    [INTEGRITY_TABLE_PUBLIC] = "SELECT EXISTS (SELECT FROM symbol_table_public WHERE build_id = $1"
                               " AND object_key = $2)",
};

/* Rows are deleted before their objects, so an object without a row was deleted and not lost. */
enum err_code integrity_row_exists(struct pg_pool *database, const struct integrity_object *object,
                                   bool *ret_exists, struct err *err)
{
    arena_auto arena = arena_create();
    pg_auto connection = NULL;
    struct pg_result *result;
    enum err_code code = pg_take(database, &connection, err);
    if (code)
        return code;
    code = pg_query_values(connection, object->tenant_id ? object->tenant_id : PG_NO_TENANT,
                           row_queries[object->kind], arena, &result, err, PG_TEXT(object->row),
                           PG_TEXT(object->key));
    if (code)
        return code;
    *ret_exists = pg_get_bool(result, 0, 0);
    return ERR_NONE;
}

enum err_code integrity_check_store(struct object_store *objects, struct err *err)
{
    struct err found;
    if (!object_store_check(objects, OBJECT_STORE_SETUP_IDENTITY_KEY, &found))
        return ERR_NONE;
    err_set(err, ERR_BUSY, "the object store cannot be used: %s", found.message);
    err->public_text = found.public_text ? found.public_text : "the object store cannot be used";
    err->retry_after_s = 5;
    return ERR_BUSY;
}

static enum err_code fail_missing(struct server *server, const struct integrity_object *object,
                                  struct err *err)
{
    bool exists = false;
    enum err_code code = integrity_row_exists(server->database, object, &exists, err);
    if (code)
        return code;
    if (!exists)
        return err_set(err, ERR_NOT_FOUND, "there is no object %s", object->key);
    code = integrity_check_store(server->objects, err);
    if (code)
        return code;
    err_set(err, ERR_LOST,
            "object %s is lost: the database names it and the store has no such "
            "object",
            object->key);
    integrity_report(server, object, err);
    return ERR_LOST;
}

enum err_code integrity_open(struct server *server, const struct integrity_object *object,
                             int *ret_fd, struct err *err)
{
    return integrity_open_within(server, object, NULL, ret_fd, err);
}

enum err_code integrity_open_within(struct server *server, const struct integrity_object *object,
                                    const struct wait_limit *wait_limit, int *ret_fd,
                                    struct err *err)
{
    int fd;
    uint64_t bytes;
    char what[100];
    enum err_code code =
        object_open_within(server->objects, object->key, wait_limit, &fd, &bytes, err);
    if (code == ERR_NOT_FOUND)
        return fail_missing(server, object, err);
    if (code == ERR_CORRUPT)
        integrity_report(server, object, err);
    if (code)
        return code;
    if (bytes != object->bytes) {
        os_close(fd);
        snprintf(what, sizeof(what), "it has %" PRIu64 " bytes and must have %" PRIu64, bytes,
                 object->bytes);
        return fail_damaged(server, object, what, err);
    }
    *ret_fd = fd;
    return ERR_NONE;
}

enum err_code integrity_read_range(struct server *server, const struct integrity_object *object,
                                   uint64_t offset, size_t size, struct buf *buf, struct err *err)
{
    const enum err_code code =
        object_read_range(server->objects, object->key, offset, size, buf, err);
    if (code == ERR_NOT_FOUND)
        return fail_missing(server, object, err);
    if (code == ERR_CORRUPT)
        integrity_report(server, object, err);
    return code;
}

const struct integrity_object *integrity_copy(struct arena *arena,
                                              const struct integrity_object *object)
{
    struct integrity_object *copy = arena_new(arena, struct integrity_object, 1);
    *copy = *object;
    copy->row = arena_strdup(arena, object->row);
    copy->key = arena_strdup(arena, object->key);
    copy->cursor = NULL;
    copy->sha256 = span_of(arena_strndup(arena, object->sha256.data, object->sha256.size),
                           object->sha256.size);
    return copy;
}

/* ---- digests ---- */

static enum err_code compare_digest(struct server *server, const struct integrity_object *object,
                                    const uint8_t sha256[DIGEST_BYTES], struct err *err)
{
    if (object->sha256.size == 0 || digest_equal(object->sha256, span_of(sha256, DIGEST_BYTES)))
        return ERR_NONE;
    return fail_damaged(server, object, "its SHA-256 is not the one of what was uploaded", err);
}

static enum err_code hash_file(const char *key, int fd, uint64_t bytes, integrity_pace *pace,
                               void *context, uint8_t ret_sha256[DIGEST_BYTES], struct err *err)
{
    enum err_code code = ERR_NONE;
    uint8_t *piece = mem_alloc(PIECE_BYTES, 1);
    struct digest_stream *digest = digest_stream_create();
    for (uint64_t done = 0; !code && done < bytes;) {
        const ssize_t got = os_pread(fd, piece, PIECE_BYTES, (off_t)done);
        if (got < 0)
            code = object_fail_reading(err, "cannot read object", key);
        else if (got == 0)
            code = err_set(err, ERR_CORRUPT, "object %s ended early", key);
        else
            digest_stream_append(digest, span_of(piece, (size_t)got));
        done += got > 0 ? (uint64_t)got : 0;
        if (!code && pace && !pace(context, (uint64_t)got))
            code = err_set(err, ERR_CANCELLED, "reading object %s was aborted", key);
    }
    digest_stream_finish(digest, ret_sha256);
    digest_stream_destroy(digest);
    mem_free(piece);
    return code;
}

/* Reads an object in ranges, so that no copy of it needs space on the disk. A range does not state
 * the size of the object: the last byte is read again together with the next, which must not exist.
 */
static enum err_code hash_ranges(struct object_store *objects,
                                 const struct integrity_object *object, integrity_pace *pace,
                                 void *context, uint8_t ret_sha256[DIGEST_BYTES], struct err *err)
{
    enum err_code code = ERR_NONE;
    buf_auto piece;
    struct digest_stream *digest = digest_stream_create();
    buf_init(&piece, RANGE_BYTES);
    for (uint64_t done = 0; !code && done < object->bytes; done += piece.size) {
        const uint64_t left = object->bytes - done;
        buf_clear(&piece);
        code = object_read_range(objects, object->key, done,
                                 left < RANGE_BYTES ? (size_t)left : RANGE_BYTES, &piece, err);
        digest_stream_append(digest, buf_span(&piece));
        if (!code && pace && !pace(context, piece.size))
            code = err_set(err, ERR_CANCELLED, "reading object %s was aborted", object->key);
    }
    digest_stream_finish(digest, ret_sha256);
    digest_stream_destroy(digest);
    buf_clear(&piece);
    if (code)
        return code;
    code = object_read_range(objects, object->key, object->bytes - 1, 2, &piece, err);
    if (code == ERR_CORRUPT) { /* the object ends where it should */
        *err = (struct err){0};
        return ERR_NONE;
    }
    return code ? code
                : err_set(err, ERR_CORRUPT, "object %s has more than %" PRIu64 " bytes",
                          object->key, object->bytes);
}

enum err_code integrity_check(struct object_store *objects, const struct integrity_object *object,
                              integrity_pace *pace, void *context, struct err *err)
{
    fd_auto fd = -1;
    uint64_t bytes;
    uint8_t sha256[DIGEST_BYTES];
    const bool is_read_in_ranges =
        object_store_makes_copies(objects) && object->bytes > RANGE_BYTES;
    enum err_code code = is_read_in_ranges
                             ? hash_ranges(objects, object, pace, context, sha256, err)
                             : object_open(objects, object->key, &fd, &bytes, err);
    if (code)
        return code;
    if (!is_read_in_ranges && bytes != object->bytes)
        return err_set(err, ERR_CORRUPT, "%" PRIu64 " bytes, the database records %" PRIu64, bytes,
                       object->bytes);
    if (!is_read_in_ranges)
        code = hash_file(object->key, fd, bytes, pace, context, sha256, err);
    if (!code && object->sha256.size &&
        !digest_equal(object->sha256, span_of(sha256, DIGEST_BYTES)))
        code = err_set(err, ERR_CORRUPT, "its SHA-256 is not the one that the database states");
    return code;
}

enum err_code integrity_verify(struct server *server, const struct integrity_object *object, int fd,
                               struct err *err)
{
    uint8_t sha256[DIGEST_BYTES];
    if (object->sha256.size == 0)
        return ERR_NONE;
    enum err_code code = hash_file(object->key, fd, object->bytes, NULL, NULL, sha256, err);
    if (code == ERR_CORRUPT)
        integrity_report(server, object, err);
    return code ? code : compare_digest(server, object, sha256, err);
}

enum err_code integrity_verify_bytes(struct server *server, const struct integrity_object *object,
                                     struct span bytes, struct err *err)
{
    uint8_t sha256[DIGEST_BYTES];
    if (object->sha256.size == 0)
        return ERR_NONE;
    digest_sha256(bytes, sha256);
    return compare_digest(server, object, sha256, err);
}

/* ---- verified once ---- */

static bool are_equal(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_same_file(const struct verified *a, const struct verified *b)
{
    return a->inode == b->inode && a->device == b->device && a->bytes == b->bytes &&
           are_equal(&a->modified, &b->modified) && are_equal(&a->changed, &b->changed) &&
           strcmp(a->key, b->key) == 0;
}

static bool is_verified(struct integrity *integrity, const struct verified *wanted)
{
    bool is_known = false;
    pthread_mutex_lock(&integrity->mutex);
    for (size_t i = 0; i < VERIFIED_COUNT && !is_known; i++) {
        const struct verified *known = &integrity->verified[i];
        is_known = is_same_file(known, wanted) &&
                   wanted->verified_ns - known->verified_ns < VERIFIED_S * CLOCK_NS_PER_S;
    }
    pthread_mutex_unlock(&integrity->mutex);
    return is_known;
}

static void keep_verified(struct integrity *integrity, const struct verified *verified)
{
    pthread_mutex_lock(&integrity->mutex);
    integrity->verified[integrity->next] = *verified;
    integrity->next = (integrity->next + 1) % VERIFIED_COUNT;
    pthread_mutex_unlock(&integrity->mutex);
}

/* Reads the object once, without a copy if it is large. */
static enum err_code open_and_verify(struct server *server, const struct integrity_object *object,
                                     struct err *err)
{
    const enum err_code code = integrity_check(server->objects, object, NULL, NULL, err);
    if (code == ERR_NOT_FOUND)
        return fail_missing(server, object, err);
    if (code == ERR_CORRUPT) {
        integrity_report(server, object, err);
        return err_add(err, "object %s is damaged", object->key);
    }
    return code;
}

enum err_code integrity_verify_once(struct server *server, const struct integrity_object *object,
                                    int fd, struct err *err)
{
    struct stat status = {0};
    if (fd >= 0 && fstat(fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "cannot read object %s", object->key);
    struct verified verified = {.device = status.st_dev,
                                .inode = status.st_ino,
                                .bytes = status.st_size,
                                .modified = status.st_mtim,
                                .changed = status.st_ctim,
                                .verified_ns = clock_monotonic_ns()};
    snprintf(verified.key, sizeof(verified.key), "%s", object->key);
    if (is_verified(server->integrity, &verified))
        return ERR_NONE;
    const enum err_code code =
        fd >= 0 ? integrity_verify(server, object, fd, err) : open_and_verify(server, object, err);
    if (code)
        return code;
    keep_verified(server->integrity, &verified);
    return ERR_NONE;
}

/* ---- while it is sent ---- */

struct integrity_stream {
    struct server *server;
    struct integrity_object object;
    uint8_t sha256[DIGEST_BYTES];
    struct digest_stream *digest;
};

static void destroy_digest(void *digest)
{
    digest_stream_destroy(digest);
}

struct integrity_stream *integrity_stream_create(struct server *server, struct arena *arena,
                                                 const struct integrity_object *object)
{
    struct integrity_stream *stream = arena_new(arena, struct integrity_stream, 1);
    stream->server = server;
    stream->object = *object;
    stream->object.row = arena_strdup(arena, object->row);
    stream->object.key = arena_strdup(arena, object->key);
    if (object->sha256.size == DIGEST_BYTES) {
        memcpy(stream->sha256, object->sha256.data, DIGEST_BYTES);
        stream->object.sha256 = span_of(stream->sha256, DIGEST_BYTES);
    }
    stream->digest = digest_stream_create();
    arena_on_destroy(arena, destroy_digest, stream->digest);
    return stream;
}

void integrity_stream_append(struct integrity_stream *stream, struct span bytes)
{
    digest_stream_append(stream->digest, bytes);
}

enum err_code integrity_stream_finish(struct integrity_stream *stream, struct err *err)
{
    uint8_t sha256[DIGEST_BYTES];
    digest_stream_finish(stream->digest, sha256);
    return compare_digest(stream->server, &stream->object, sha256, err);
}

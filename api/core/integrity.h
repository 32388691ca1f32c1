/*
 * integrity: compares stored objects with the size and the SHA-256 that their rows state.
 *
 * An object is damaged (ERR_CORRUPT) when its size or its digest differs from the row, and lost
 * (ERR_LOST) when a row still names it and the store has no such object. An object whose row was
 * deleted in the meantime is neither: integrity_open reports ERR_NOT_FOUND. Each read of a damaged
 * or lost object is logged at error level and counted by kind (perfolio_objects_damaged_total,
 * perfolio_objects_lost_total). At most once a minute, the object is also entered in the list for
 * operators (api/ops/scrub.h).
 *
 * Segments and blocks of the store have no digest in their rows. Every byte of a block is covered
 * by a CRC32C of the block itself, which every reader compares (store/block/block_format.h).
 *
 * Threads: a server's struct integrity is shared; an integrity_stream belongs to one thread at a
 * time.
 */
#ifndef API_CORE_INTEGRITY_H
#define API_CORE_INTEGRITY_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct integrity;
struct integrity_stream;
struct metrics;
struct object_store;
struct wait_limit;
struct pg_pool;
struct server;

enum integrity_kind {
    INTEGRITY_SHARE,
    INTEGRITY_PART,
    INTEGRITY_DEBUG_FILE,
    INTEGRITY_TABLE,
    INTEGRITY_TABLE_PUBLIC,
    INTEGRITY_SEGMENT,
    INTEGRITY_BLOCK,
    INTEGRITY_KIND_COUNT
};

/* The value of the label kind: "share", "part", "debug_file", … */
const char *integrity_kind_name(enum integrity_kind kind);

/* An object as its row describes it. All texts are borrowed. */
struct integrity_object {
    enum integrity_kind kind;
    int64_t tenant_id; /* 0: of all tenants */
    const char *row;   /* share: its id; part: the upload's; debug file and tables: the build id */
    const char *key;
    uint64_t bytes;
    struct span sha256; /* empty for segments and blocks, which contain checksums */
    const char *cursor; /* the position after this row, for object_verify_page, which sets it;
                           NULL in all other objects */
};

struct integrity *integrity_create(struct metrics *metrics);
void integrity_destroy(struct integrity *integrity); /* NULL is a no-op */

/* Called after the store reported that an object does not exist. Checks whether the object is lost
 * or the whole store is unusable: an S3 server whose bucket is missing reports that for all
 * objects. Errors: ERR_BUSY (the store cannot be used). */
enum err_code integrity_check_store(struct object_store *objects, struct err *err) MUST_USE;

/* Opens the object and compares its size with the row. The caller closes *ret_fd. Errors:
 * ERR_LOST, ERR_CORRUPT, ERR_NOT_FOUND (its row does not exist any more either), the codes of
 * object_open. */
enum err_code integrity_open(struct server *server, const struct integrity_object *object,
                             int *ret_fd, struct err *err) MUST_USE;
/* As integrity_open, with a deadline. Errors also: ERR_CANCELLED (wait_limit has ended). */
enum err_code integrity_open_within(struct server *server, const struct integrity_object *object,
                                    const struct wait_limit *wait_limit, int *ret_fd,
                                    struct err *err) MUST_USE;

/* Appends a range of the object to buf. Meant for objects in a bucket, which integrity_open would
 * copy as a whole. Errors: ERR_LOST, ERR_CORRUPT (the object ends before the range does),
 * ERR_NOT_FOUND (its row does not exist any more either), the codes of object_read_range. */
enum err_code integrity_read_range(struct server *server, const struct integrity_object *object,
                                   uint64_t offset, size_t size, struct buf *buf,
                                   struct err *err) MUST_USE;
/* Returns a copy in arena, which borrows nothing: its texts are copied, and cursor is NULL. */
const struct integrity_object *integrity_copy(struct arena *arena,
                                              const struct integrity_object *object);

/* Reads the whole file and compares its digest. Errors: ERR_CORRUPT, ERR_IO. */
enum err_code integrity_verify(struct server *server, const struct integrity_object *object, int fd,
                               struct err *err) MUST_USE;
/* As integrity_verify for bytes in memory, such as a mapping. Errors: ERR_CORRUPT. */
enum err_code integrity_verify_bytes(struct server *server, const struct integrity_object *object,
                                     struct span bytes, struct err *err) MUST_USE;

/*
 * As integrity_verify, for requests that read parts of a large object one after the other: the
 * result is reused for ten minutes while the file is the same one (device, inode, size, times of
 * its last change), so that only the first of these requests reads the whole object. fd -1: opens
 * and reads the object if it was not verified within that time; for stores that make copies, whose
 * objects are identified by their keys. Errors: those of integrity_verify; with fd -1 also those of
 * integrity_open.
 */
enum err_code integrity_verify_once(struct server *server, const struct integrity_object *object,
                                    int fd, struct err *err) MUST_USE;

/* Compares an object while it is sent. Copies object; lives as long as arena. */
struct integrity_stream *integrity_stream_create(struct server *server, struct arena *arena,
                                                 const struct integrity_object *object);
void integrity_stream_append(struct integrity_stream *stream, struct span bytes);
/* Call it once, after the last byte. Errors: ERR_CORRUPT. */
enum err_code integrity_stream_finish(struct integrity_stream *stream, struct err *err) MUST_USE;

/* Whether a row still names the object. The role of database must see the row. Not for segments and
 * blocks. */
enum err_code integrity_row_exists(struct pg_pool *database, const struct integrity_object *object,
                                   bool *ret_exists, struct err *err) MUST_USE;
/* Called after each piece that was read, with the size of the piece, on the thread that reads. May
 * wait, to slow down the reading. Returns false to abort it with ERR_CANCELLED. */
typedef bool integrity_pace(void *context, uint64_t bytes);
/* Reads the whole object and compares size and digest; logs and counts nothing. pace may be NULL;
 * context is its first argument. Errors: ERR_NOT_FOUND, ERR_CORRUPT, ERR_IO with is_unreadable,
 * ERR_CANCELLED, the codes of object_open. */
enum err_code integrity_check(struct object_store *objects, const struct integrity_object *object,
                              integrity_pace *pace, void *context, struct err *err) MUST_USE;

/* Logs and counts an object, and enters it in the list for operators: for an object that the caller
 * found damaged (err->code ERR_CORRUPT) or lost (ERR_LOST) without the functions above. */
void integrity_report(struct server *server, const struct integrity_object *object,
                      const struct err *err);

#endif

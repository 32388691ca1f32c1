/*
 * object: immutable bytes by key, in a local folder or in an S3-compatible server.
 *
 * A key is one to three parts of [A-Za-z0-9._-] joined by "/", none starting with a dot, at most
 * 200 bytes. An object is written once and never changed: nobody puts two things under one key. The
 * folder refuses the second with ERR_CONFLICT; S3 has no portable way to, and would overwrite.
 *
 * object_put and object_writer_commit return only after bytes and name are durable (folder:
 * fdatasync of the file, fsync of its folder; S3: the server's answer), so what a caller
 * acknowledges afterwards survives kill -9 and power loss. A put that failed may still have left an
 * object on S3, when only the answer was lost. Unfinished writes are swept by
 * object_sweep_temporary at start.
 *
 * Besides what a function names, all can fail with ERR_INVALID (not a key), ERR_IO (the disk, or a
 * server that refuses) and ERR_BUSY (S3: out of reach or overloaded after all retries; with
 * retry_after_s). Where an object is there and may not be read, or its place on the disk is bad,
 * reading it is ERR_IO with is_unreadable: others may do better. Errors of S3 have a public_text,
 * since their messages name the endpoint, the bucket and keys. Threads: a store is shared; a writer
 * belongs to one thread.
 */
#ifndef LIB_IO_OBJECT_H
#define LIB_IO_OBJECT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { OBJECT_KEY_MAX_BYTES = 200, OBJECT_KEY_MAX_PARTS = 3 };

struct object_store; /* S3: lib/io/object_s3.h opens it */
struct object_writer;
struct wait_limit;

/* Called with each object of a listing; modified is wall time. */
typedef enum err_code object_visit(void *context, const char *key, uint64_t size,
                                   int64_t modified_ns, struct err *err);

/* Opens (and creates, mode 0700) the folder; D/objects/<key>, unfinished ones in D/objects/.tmp/.
 */
enum err_code object_folder_open(const char *path, struct object_store **ret_store,
                                 struct err *err) MUST_USE;
/* The same folder, which must exist, for reading: nothing is created, and every write fails with
 * ERR_IO. Handles: ERR_NOT_FOUND. */
enum err_code object_folder_open_to_read(const char *path, struct object_store **ret_store,
                                         struct err *err) MUST_USE;
/*
 * From now on the calling thread opens objects of this folder with the permissions of a user, as
 * far as the process may take them on (root): what that user cannot read is ERR_IO with
 * is_unreadable. The user of the process itself ends it. For a folder that is opened to read.
 */
void object_folder_read_as(struct object_store *store, uid_t uid, gid_t gid);
void object_store_close(struct object_store *store); /* NULL is a no-op */
/* False while requests fail at once because the server does not respond (object_s3_watch). */
bool object_store_is_responding(const struct object_store *store);

enum err_code object_put(struct object_store *store, const char *key, struct span bytes,
                         struct err *err) MUST_USE;

/* Writes one object piece by piece with bounded memory (S3: parts of 8 MiB, at most 10,000 of
 * them, then ERR_TOO_LARGE). abort(NULL) is a no-op; commit ends it too. */
enum err_code object_writer_open(struct object_store *store, const char *key,
                                 struct object_writer **ret_writer, struct err *err) MUST_USE;
enum err_code object_writer_append(struct object_writer *writer, struct span bytes,
                                   struct err *err) MUST_USE;
enum err_code object_writer_commit(struct object_writer *writer, struct err *err) MUST_USE;
void object_writer_abort(struct object_writer *writer);

/* A read-only file descriptor at offset 0, closed by the caller. On S3 that of an unlinked
 * temporary file with a copy of the whole object. Handles: ERR_NOT_FOUND, ERR_CORRUPT (folder:
 * something else than a regular file has its name). ERR_BUSY is also an object of S3 past the size
 * that the options allow, since no writer writes one. */
enum err_code object_open(struct object_store *store, const char *key, int *ret_fd,
                          uint64_t *ret_size, struct err *err) MUST_USE;
/* The same for somebody who does not wait for ever: with S3, ERR_CANCELLED once the patience is
 * over. */
enum err_code object_open_within(struct object_store *store, const char *key,
                                 const struct wait_limit *wait_limit, int *ret_fd,
                                 uint64_t *ret_size, struct err *err) MUST_USE;
/* The whole object appended to buf. Handles: ERR_NOT_FOUND, ERR_CORRUPT, ERR_TOO_LARGE (past buf's
 * maximum). */
enum err_code object_read(struct object_store *store, const char *key, struct buf *buf,
                          struct err *err) MUST_USE;
/* Exactly size bytes from offset appended to buf; on failure buf keeps what it had. Size 0 reads
 * nothing and does not look. Handles: ERR_NOT_FOUND, ERR_CORRUPT (also: the object ends before
 * offset + size), ERR_TOO_LARGE (past buf's maximum). */
enum err_code object_read_range(struct object_store *store, const char *key, uint64_t offset,
                                size_t size, struct buf *buf, struct err *err) MUST_USE;
/* As object_open_within is to object_open. */
enum err_code object_read_range_within(struct object_store *store, const char *key, uint64_t offset,
                                       size_t size, const struct wait_limit *wait_limit,
                                       struct buf *buf, struct err *err) MUST_USE;
/* Reads a byte of it, from where it is kept and not from memory. Handles: ERR_NOT_FOUND,
 * ERR_CORRUPT, ERR_CANCELLED. */
enum err_code object_probe(struct object_store *store, const char *key,
                           const struct wait_limit *wait_limit, struct err *err) MUST_USE;
/* Can the store be used? S3: reads a byte of key, an object that is there, and writes an object
 * where the last write failed; without another try, within 2 s, or up to 10 s where the server is
 * known to be slow. Folder: does nothing. Handles: any
 * failure, of which err->public_text says what clients may know. */
enum err_code object_store_check(struct object_store *store, const char *key,
                                 struct err *err) MUST_USE;
/* Fails with ERR_IO and errno's text: "what name: …". Of reading an object, or its copy. */
enum err_code object_fail_reading(struct err *err, const char *what, const char *name);
/* Gone durably; deleting what is not there succeeds. */
enum err_code object_delete(struct object_store *store, const char *key, struct err *err) MUST_USE;
/* The same for many at the price of few (folder: one fsync per folder in a row of keys, so keys are
 * best sorted; S3: one request per thousand). After a failure some may be gone, others not; it can
 * be repeated. */
enum err_code object_delete_many(struct object_store *store, const char *const *keys, size_t count,
                                 struct err *err) MUST_USE;
/* Calls visit for each object whose key starts with prefix, in no order; stops at the first code
 * that is not ERR_NONE and returns it. visit may use the store. */
enum err_code object_list(struct object_store *store, const char *prefix, object_visit *visit,
                          void *context, struct err *err) MUST_USE;
/*
 * As object_list of all objects, and in a folder also of every other name that object_list passes
 * over because no object has it. The name of something else than a regular file ends as `ls -F`
 * marks it: "/" (folder, of which nothing inside is visited), "|", "=", "@" or "%". Passed over
 * are names in the top folder that begin with a dot (unfinished writes) and lost+found.
 */
enum err_code object_list_all(struct object_store *store, object_visit *visit, void *context,
                              struct err *err) MUST_USE;
/* Can it be an object's key? See above. */
bool object_is_key(const char *key);
/* Deletes what ended writers left. Folder: all, so before the first writer; S3: uploads too old to
 * belong to a living writer, of any node. */
enum err_code object_sweep_temporary(struct object_store *store, struct err *err) MUST_USE;

#endif

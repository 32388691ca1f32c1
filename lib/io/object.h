/*
 * object: immutable objects by key, in a local directory or on an S3-compatible server.
 *
 * A key is one to three parts of [A-Za-z0-9._-] joined by "/", none starting with a dot, at most
 * 200 bytes. An object is written once and never changed; callers never use a key twice. The
 * directory backend rejects a second write with ERR_CONFLICT; S3 has no portable way to do so and
 * would overwrite.
 *
 * object_put and object_writer_commit return only after bytes and name are durable (directory:
 * fdatasync of the file and fsync of its directory; S3: the server's response), so data that a
 * caller acknowledges afterwards survives kill -9 and power loss. A failed put may still have left
 * an object on S3, if only the response was lost. object_sweep_temporary removes unfinished writes
 * at start.
 *
 * In addition to the errors listed per function, all functions can fail with ERR_INVALID (not a
 * key), ERR_IO (the disk, or a server that refuses) and ERR_BUSY (S3: unreachable or overloaded
 * after all retries; with retry_after_s). If an object exists but may not be read, or is on a bad
 * disk sector, reading it fails with ERR_IO and is_unreadable: other objects may be readable.
 * Errors of S3 have a public_text, since their messages contain the endpoint, the bucket and keys.
 * Threads: a store may be shared; a writer belongs to one thread.
 */
#ifndef LIB_IO_OBJECT_H
#define LIB_IO_OBJECT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { OBJECT_KEY_MAX_BYTES = 200, OBJECT_KEY_MAX_PARTS = 3 };

struct object_store; /* for S3: opened by lib/io/object_s3.h */
struct buf;
struct object_writer;
struct wait_limit;

/* Called with each object of a listing; modified_ns is wall time. */
typedef enum err_code object_visit(void *context, const char *key, uint64_t size,
                                   int64_t modified_ns, struct err *err);

/* Opens the store in a directory, which is created with mode 0700 if it does not exist: objects are
 * in path/objects/<key>, unfinished ones in path/objects/.tmp/. */
enum err_code object_folder_open(const char *path, struct object_store **ret_store,
                                 struct err *err) MUST_USE;
/* Opens an existing directory read-only: nothing is created, and every write fails with ERR_IO.
 * Errors: ERR_NOT_FOUND. */
enum err_code object_folder_open_to_read(const char *path, struct object_store **ret_store,
                                         struct err *err) MUST_USE;
/*
 * The calling thread henceforth opens objects of this directory with the permissions of a user, if
 * the process may assume them (root): objects that this user cannot read give ERR_IO with
 * is_unreadable. Passing the process's own user ends that. Only for a store that was opened
 * read-only.
 */
void object_folder_read_as(struct object_store *store, uid_t uid, gid_t gid);
void object_store_close(struct object_store *store); /* NULL is a no-op */
static inline void object_store_cleanup(struct object_store **store)
{
    object_store_close(*store);
}
#define object_store_auto __attribute__((cleanup(object_store_cleanup))) struct object_store *
/* False while requests fail at once because the server does not respond (object_s3_watch). */
bool object_store_is_responding(const struct object_store *store);

/* Writes an object; it is durable when this returns. A failed put may have left the object. */
enum err_code object_put(struct object_store *store, const char *key, struct span bytes,
                         struct err *err) MUST_USE;

/* Writes one object in pieces with bounded memory (S3: parts of 8 MiB, at most 10,000 of them,
 * then ERR_TOO_LARGE). commit and abort both end the writer; abort(NULL) is a no-op. */
enum err_code object_writer_open(struct object_store *store, const char *key,
                                 struct object_writer **ret_writer, struct err *err) MUST_USE;
enum err_code object_writer_append(struct object_writer *writer, struct span bytes,
                                   struct err *err) MUST_USE;
enum err_code object_writer_commit(struct object_writer *writer, struct err *err) MUST_USE;
void object_writer_abort(struct object_writer *writer);

/* Opens an object as a read-only file descriptor at offset 0, which the caller closes. On S3 it
 * is an unlinked temporary file with a copy of the object. Errors: ERR_NOT_FOUND, ERR_CORRUPT
 * (directory: the name belongs to something other than a regular file), ERR_BUSY (also for an S3
 * object larger than the options allow, which no writer creates). */
enum err_code object_open(struct object_store *store, const char *key, int *ret_fd,
                          uint64_t *ret_size, struct err *err) MUST_USE;
/* The same with a limit on the wait: on S3, ERR_CANCELLED once wait_limit is over. */
enum err_code object_open_within(struct object_store *store, const char *key,
                                 const struct wait_limit *wait_limit, int *ret_fd,
                                 uint64_t *ret_size, struct err *err) MUST_USE;
/* As object_open for background work, whose copy may leave less of the disk (object_s3_set_space).
 */
enum err_code object_open_in_background(struct object_store *store, const char *key, int *ret_fd,
                                        uint64_t *ret_size, struct err *err) MUST_USE;
/* Whether object_open makes a copy of the whole object (S3), so that a caller who needs the bytes
 * one after the other should read ranges instead. */
bool object_store_makes_copies(const struct object_store *store);
/* Appends the whole object to buf. Errors: ERR_NOT_FOUND, ERR_CORRUPT, ERR_TOO_LARGE (above
 * buf's maximum). */
enum err_code object_read(struct object_store *store, const char *key, struct buf *buf,
                          struct err *err) MUST_USE;
/* Appends exactly size bytes from offset to buf; after a failure buf is unchanged. Size 0 does
 * not access the object. Errors: ERR_NOT_FOUND, ERR_CORRUPT (also: the object ends before
 * offset + size), ERR_TOO_LARGE (above buf's maximum). */
enum err_code object_read_range(struct object_store *store, const char *key, uint64_t offset,
                                size_t size, struct buf *buf, struct err *err) MUST_USE;
/* The same with a limit on the wait, as object_open_within. */
enum err_code object_read_range_within(struct object_store *store, const char *key, uint64_t offset,
                                       size_t size, const struct wait_limit *wait_limit,
                                       struct buf *buf, struct err *err) MUST_USE;
/* Reads a byte of the object from its storage, bypassing the page cache. Errors: ERR_NOT_FOUND,
 * ERR_CORRUPT, ERR_CANCELLED. */
enum err_code object_probe(struct object_store *store, const char *key,
                           const struct wait_limit *wait_limit, struct err *err) MUST_USE;
/* Checks whether the store can be used. S3: reads a byte of key, an existing object, and writes
 * an object if the last write failed; without a retry, within 2 s, or up to 10 s if the server
 * is known to be slow. Directory: does nothing. Errors: any failure; err->public_text is what
 * clients may see. */
enum err_code object_store_check(struct object_store *store, const char *key,
                                 struct err *err) MUST_USE;
/* Sets ERR_IO for a failure to read an object or its copy. The message is `what`, `name` and the
 * text of errno. */
enum err_code object_fail_reading(struct err *err, const char *what, const char *name);
/* Deletes an object durably; an absent object is not an error. */
enum err_code object_delete(struct object_store *store, const char *key, struct err *err) MUST_USE;
/* Deletes many objects at a lower cost (directory: one fsync per directory in a run of keys, so
 * sort the keys; S3: one request per thousand). After a failure some may be deleted; it can be
 * repeated. */
enum err_code object_delete_many(struct object_store *store, const char *const *keys, size_t count,
                                 struct err *err) MUST_USE;
/* Calls visit for each object whose key starts with prefix, in no particular order. Stops at the
 * first code that is not ERR_NONE and returns it. visit may use the store. */
enum err_code object_list(struct object_store *store, const char *prefix, object_visit *visit,
                          void *context, struct err *err) MUST_USE;
/*
 * As object_list for all objects; in a directory it also visits names that no object can have. The
 * name of anything but a regular file ends with the mark of `ls -F`: "/" (a directory, whose
 * contents are not visited), "|", "=", "@" or "%". Names in the top directory that begin with a dot
 * (unfinished writes) and lost+found are skipped.
 */
enum err_code object_list_all(struct object_store *store, object_visit *visit, void *context,
                              struct err *err) MUST_USE;
/* Whether the text has the form of a key, see above. */
bool object_is_key(const char *key);
/* Deletes the remains of ended writers. Directory: all of them, so call it before the first
 * writer; S3: uploads of any node that are too old to belong to a running writer. */
enum err_code object_sweep_temporary(struct object_store *store, struct err *err) MUST_USE;

#endif

/*
 * object: immutable bytes by key, in a local folder now, in other stores later.
 *
 * A key is one to three parts of [A-Za-z0-9._-] joined by "/", at most 200 bytes. An object is
 * written once and never changed. object_put and object_writer_commit return only after bytes and
 * name are durable (fdatasync of the file, fsync of its folder), so what a caller acknowledges
 * afterwards survives kill -9 and power loss. Unfinished writes are swept by object_sweep_temporary
 * at start. Threads: a store is shared; a writer and a reader belong to one thread.
 */
#ifndef LIB_IO_OBJECT_H
#define LIB_IO_OBJECT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdint.h>

struct object_store;
struct object_writer;

/* Opens (and creates, mode 0700) the folder; D/objects/<key>, unfinished ones in D/objects/.tmp/.
 */
enum err_code object_folder_open(const char *path, struct object_store **ret_store,
                                 struct err *err) MUST_USE;
void object_store_close(struct object_store *store);

enum err_code object_put(struct object_store *store, const char *key, struct span bytes,
                         struct err *err) MUST_USE;

/* Writes one object piece by piece with bounded memory. abort(NULL) is a no-op; commit ends it too.
 */
enum err_code object_writer_open(struct object_store *store, const char *key,
                                 struct object_writer **ret_writer, struct err *err) MUST_USE;
enum err_code object_writer_append(struct object_writer *writer, struct span bytes,
                                   struct err *err) MUST_USE;
enum err_code object_writer_commit(struct object_writer *writer, struct err *err) MUST_USE;
void object_writer_abort(struct object_writer *writer);

/* A read-only file descriptor at offset 0, closed by the caller. Handles: ERR_NOT_FOUND. */
enum err_code object_open(struct object_store *store, const char *key, int *ret_fd,
                          uint64_t *ret_size, struct err *err) MUST_USE;
/* The whole object appended to buf. Handles: ERR_NOT_FOUND, ERR_TOO_LARGE (past buf's maximum). */
enum err_code object_read(struct object_store *store, const char *key, struct buf *buf,
                          struct err *err) MUST_USE;
/* Gone durably; deleting what is not there succeeds. */
enum err_code object_delete(struct object_store *store, const char *key, struct err *err) MUST_USE;
/* Calls visit(context, key, size, modified wall ns) for each object whose key starts with prefix,
 * in no order; stops at the first code that is not ERR_NONE and returns it. */
enum err_code object_list(struct object_store *store, const char *prefix,
                          enum err_code (*visit)(void *context, const char *key, uint64_t size,
                                                 int64_t modified_ns, struct err *err),
                          void *context, struct err *err) MUST_USE;
enum err_code object_sweep_temporary(struct object_store *store, struct err *err) MUST_USE;

#endif

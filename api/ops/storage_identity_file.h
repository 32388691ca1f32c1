/*
 * storage_identity_file: the id in the storage of objects, a folder or a bucket, and a look at the
 * objects there.
 *
 * A folder contains the id in the file .database-id, a name that no object can have; a bucket in
 * the object database-id. For storage_identity.c only; a struct belongs to one thread.
 */
#ifndef API_OPS_STORAGE_IDENTITY_FILE_H
#define API_OPS_STORAGE_IDENTITY_FILE_H

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct object_store;
struct settings;

struct storage_identity_file {
    int folder_fd;              /* D/objects; -1 with a bucket */
    struct object_store *store; /* the bucket, or NULL */
};

enum err_code storage_identity_file_open(const struct settings *settings,
                                         struct storage_identity_file *ret_storage,
                                         struct err *err) MUST_USE;
void storage_identity_file_close(
    struct storage_identity_file *storage); /* safe after a failed open */

/* ret_id becomes "" if there is none. Errors: ERR_CORRUPT (it is malformed). */
enum err_code storage_identity_file_read_id(const struct storage_identity_file *storage,
                                            char ret_id[DIGEST_ID_BYTES], struct err *err) MUST_USE;
/* The id is durable when this returns. */
enum err_code storage_identity_file_write_id(const struct storage_identity_file *storage,
                                             const char *id, struct err *err) MUST_USE;
/* *ret_is_there: whether at least one of the objects exists. */
enum err_code storage_identity_file_has_any(const struct storage_identity_file *storage,
                                            const char *const *keys, size_t count,
                                            bool *ret_is_there, struct err *err) MUST_USE;
/* Lists the keys of at most max shares in the storage, as "{share/<id>,…}"; "{}" if it has none. */
enum err_code storage_identity_file_list(const struct storage_identity_file *storage, size_t max,
                                         struct arena *arena, struct span *ret_keys,
                                         struct err *err) MUST_USE;

/* For messages: "the data folder" or "the bucket with its prefix"; the name of the id there. */
const char *storage_identity_file_name(const struct storage_identity_file *storage);
const char *storage_identity_file_id_name(const struct storage_identity_file *storage);

#endif

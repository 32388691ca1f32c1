/*
 * pairing_place: where objects are, as pairing sees it: the id that lies there, and what else does.
 *
 * A folder holds the id in the file .database-id, which no object can be called; a bucket in the
 * object database-id. For pairing.c alone; a place belongs to one thread.
 */
#ifndef API_OPS_STORAGE_IDENTITY_FILE_H
#define API_OPS_STORAGE_IDENTITY_FILE_H

#include "lib/base/buf.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

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
                                         struct storage_identity_file *ret_place,
                                         struct err *err) MUST_USE;
void storage_identity_file_close(
    struct storage_identity_file *place); /* safe after a failed open */

/* ret_id becomes "" where there is none. Handles: ERR_CORRUPT (it is no id). */
enum err_code storage_identity_file_read_id(const struct storage_identity_file *place,
                                            char ret_id[DIGEST_ID_BYTES], struct err *err) MUST_USE;
/* Durable when it returns. */
enum err_code storage_identity_file_write_id(const struct storage_identity_file *place,
                                             const char *id, struct err *err) MUST_USE;
/* *ret_is_there: one of the objects is. */
enum err_code storage_identity_file_has_any(const struct storage_identity_file *place,
                                            const char *const *keys, size_t count,
                                            bool *ret_is_there, struct err *err) MUST_USE;
/* "{share/<id>,…}" of some of its shares, at most max; "{}": it has none. */
enum err_code storage_identity_file_list(const struct storage_identity_file *place, size_t max,
                                         struct arena *arena, struct span *ret_keys,
                                         struct err *err) MUST_USE;

/* For messages: "the data folder" or "the bucket with its prefix"; what the id's name is there. */
const char *storage_identity_file_name(const struct storage_identity_file *place);
const char *storage_identity_file_id_name(const struct storage_identity_file *place);

#endif

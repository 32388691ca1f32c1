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

struct pairing_place {
    int folder_fd;              /* D/objects; -1 with a bucket */
    struct object_store *store; /* the bucket, or NULL */
};

enum err_code pairing_place_open(const struct settings *settings, struct pairing_place *ret_place,
                                 struct err *err) MUST_USE;
void pairing_place_close(struct pairing_place *place); /* safe after a failed open */

/* ret_id becomes "" where there is none. Handles: ERR_CORRUPT (it is no id). */
enum err_code pairing_place_read_id(const struct pairing_place *place, char ret_id[DIGEST_ID_BYTES],
                                    struct err *err) MUST_USE;
/* Durable when it returns. */
enum err_code pairing_place_write_id(const struct pairing_place *place, const char *id,
                                     struct err *err) MUST_USE;
/* *ret_is_there: one of the objects is. */
enum err_code pairing_place_has_any(const struct pairing_place *place, const char *const *keys,
                                    size_t count, bool *ret_is_there, struct err *err) MUST_USE;
/* "{share/<id>,…}" of some of its shares, at most max; "{}": it has none. */
enum err_code pairing_place_list(const struct pairing_place *place, size_t max, struct arena *arena,
                                 struct span *ret_keys, struct err *err) MUST_USE;

/* For messages: "the data folder" or "the bucket with its prefix"; what the id's name is there. */
const char *pairing_place_name(const struct pairing_place *place);
const char *pairing_place_id_name(const struct pairing_place *place);

#endif

/*
 * backup_bucket: copies objects of a bucket or a data folder into a backup's folder objects/, and
 * back into a bucket.
 *
 * A backup of a bucket has the form of one of a folder: either can be restored to the other. All
 * objects are copied; for stores that are too large for that, use the bucket's own versions and
 * replication, with pg_dump (perfoliod(8)). Used by backup.c. One thread.
 */
#ifndef API_OPS_BACKUP_BUCKET_H
#define API_OPS_BACKUP_BUCKET_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct os_user;
struct manifest;
struct object_store;

/*
 * Copies all objects to target_fd/objects, synced, and adds them to the manifest. The caller keeps
 * the servers from deleting objects from before its dump until this returns, and compares the copy
 * with the database (backup_verify.h), since objects that are damaged or unreadable are left out.
 * server is NULL, or the user as whom objects, a folder, is read (object_folder_read_as): an object
 * that only root can read is copied with a warning on standard error. Handles: what listing objects
 * and writing files does.
 */
enum err_code backup_take_objects(struct object_store *objects, const struct os_user *server,
                                  int target_fd, struct manifest *manifest,
                                  struct err *err) MUST_USE;

/* Puts all files of source_fd/objects into the bucket, which must contain no objects of a Perfolio
 * under the prefix. After a failure the copied ones are deleted again, as far as the bucket allows.
 * Handles: ERR_CONFLICT (it contains some). */
enum err_code backup_give_to_bucket(struct object_store *objects, int source_fd,
                                    uint64_t *ret_count, struct err *err) MUST_USE;
/* Deletes all objects under the prefix. */
enum err_code backup_clear_bucket(struct object_store *objects, struct err *err) MUST_USE;

#endif

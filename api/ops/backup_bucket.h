/*
 * backup_bucket: objects of a bucket or a data folder into a backup's folder objects/, and back
 * into a bucket.
 *
 * A backup of a bucket is like one of a folder: either can be restored to the other. All objects
 * are copied; for stores that are too large for that there are the bucket's own versions and
 * replication, with pg_dump (perfoliod(8)). Used by backup.c. One thread.
 */
#ifndef API_OPS_BACKUP_BUCKET_H
#define API_OPS_BACKUP_BUCKET_H

#include "lib/base/err.h"

#include <stdint.h>

struct os_user;
struct manifest;
struct object_store;

/*
 * Copies all objects to target_fd/objects, synced, and adds them to the manifest. The caller keeps
 * the servers from deleting from before its dump until this returns, and compares the copy with the
 * database (backup_verify.h), since objects that are damaged or cannot be read are left out. server
 * is NULL, or the user as whom objects, a folder, is read (object_folder_read_as): an object that
 * root alone can read is copied with a warning on standard error. Handles: what listing objects and
 * writing files does.
 */
enum err_code backup_take_objects(struct object_store *objects, const struct os_user *server,
                                  int target_fd, struct manifest *manifest,
                                  struct err *err) MUST_USE;

/*
 * Puts all files of source_fd/objects into the bucket, which must hold no objects of a Perfolio
 * under the prefix. After a failure those that were put are deleted again, as far as the bucket
 * lets. Handles: ERR_CONFLICT (it holds some).
 */
enum err_code backup_give_to_bucket(struct object_store *objects, int source_fd,
                                    uint64_t *ret_count, struct err *err) MUST_USE;
/* Deletes them. */
enum err_code backup_clear_bucket(struct object_store *objects, struct err *err) MUST_USE;

#endif

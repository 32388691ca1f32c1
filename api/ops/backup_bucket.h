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
struct backup_manifest;
struct object_store;

/*
 * Copies all objects to the folder "objects" of target_fd, synced, and adds them to the manifest.
 * Objects that are damaged or unreadable are left out, so the caller compares the copy with the
 * database afterwards (backup_verify.h). The caller holds SERVER_SWEEP_LOCK from before its dump of
 * the database until this returns, so that no server deletes objects. server is NULL or, if objects
 * is a folder, the user as whom it is read (object_folder_read_as): an object that only root can
 * read is then copied with a warning on standard error.
 */
enum err_code backup_bucket_take(struct object_store *objects, const struct os_user *server,
                                 int target_fd, struct backup_manifest *manifest,
                                 struct err *err) MUST_USE;

/* Puts all files of source_fd/objects into the bucket, which must contain no objects of a Perfolio
 * under the prefix. After a failure, the objects copied so far are deleted, as far as the bucket
 * allows. Errors: ERR_CONFLICT (the bucket contains objects of a Perfolio). */
enum err_code backup_bucket_give(struct object_store *objects, int source_fd, uint64_t *ret_count,
                                 struct err *err) MUST_USE;
/* Deletes all objects under the prefix. */
enum err_code backup_bucket_clear(struct object_store *objects, struct err *err) MUST_USE;

#endif

/*
 * backup_verify: names each object that is missing or damaged, on standard error, for backup.c.
 *
 * One thread.
 */
#ifndef API_OPS_BACKUP_VERIFY_H
#define API_OPS_BACKUP_VERIFY_H

#include "api/ops/object_verify.h"

struct backup_options;

/* Compares target_fd/objects, a copy of source, with the rows of the snapshot, and names for each
 * object that the copy lacks why source does not give it. source is NULL where there are no
 * objects. Handles: ERR_CORRUPT (something is missing or damaged, and options do not allow it). */
enum err_code backup_verify_copy(const struct object_snapshot *snapshot,
                                 struct object_store *source, int target_fd,
                                 const struct backup_options *options, struct err *err) MUST_USE;
/* The same of objects that are in use, with the database's present rows. */
enum err_code backup_verify_live(struct pg_pool *database, struct object_store *objects,
                                 const struct backup_options *options, struct err *err) MUST_USE;

#endif

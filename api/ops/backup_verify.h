/*
 * backup_verify: reports each object that is missing or damaged, on standard error, for backup.c.
 *
 * One thread.
 */
#ifndef API_OPS_BACKUP_VERIFY_H
#define API_OPS_BACKUP_VERIFY_H

#include "api/ops/object_verify.h"

struct backup_options;

/* Compares target_fd/objects, a copy of source, with the rows of the snapshot, and reports for each
 * object that the copy lacks why it could not be read from source. source is NULL if there are no
 * objects. Handles: ERR_CORRUPT (something is missing or damaged, and options do not allow it). */
enum err_code backup_verify_copy(const struct object_snapshot *snapshot,
                                 struct object_store *source, int target_fd,
                                 const struct backup_options *options, struct err *err) MUST_USE;
/* As backup_verify_copy, for objects in use and the database's present rows. */
enum err_code backup_verify_live(struct pg_pool *database, struct object_store *objects,
                                 const struct backup_options *options, struct err *err) MUST_USE;

#endif

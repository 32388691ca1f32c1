/*
 * backup_verify: compares the objects of a backup with the database, for backup.c. Prints one line
 * on standard error for each object that is missing, damaged or unreadable.
 *
 * One thread.
 */
#ifndef API_OPS_BACKUP_VERIFY_H
#define API_OPS_BACKUP_VERIFY_H

#include "api/ops/object_verify.h"

struct backup_options;

/* Compares the copy of the objects, in the folder "objects" of target_fd, with the rows of the
 * snapshot. source is the store from which the copy was made; NULL: the data folder had no objects.
 * For an object that is missing in the copy, it tries to read the object from source and prints why
 * it was not copied. The caller handles: ERR_CORRUPT (an object is missing or damaged, and
 * options->allow_damaged is not set). */
enum err_code backup_verify_copy(const struct object_snapshot *snapshot,
                                 struct object_store *source, int target_fd,
                                 const struct backup_options *options, struct err *err) MUST_USE;
/* As backup_verify_copy, for the objects in use and the present rows of the database; are_restored:
 * the objects were restored and no start has given them an identity. On success, also prints the
 * number of objects and bytes on standard output. */
enum err_code backup_verify_live(struct pg_pool *database, struct object_store *objects,
                                 bool are_restored, const struct backup_options *options,
                                 struct err *err) MUST_USE;

#endif

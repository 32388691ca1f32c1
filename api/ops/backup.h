/*
 * backup: `perfoliod backup` and `perfoliod restore`: copies everything of a data folder to one
 * folder, and back.
 *
 * A backup is a folder, readable by its creator only: database.dump (pg_dump's custom format), the
 * folders objects/ and tls/ as they are in the data folder, and manifest.txt with one line "sha256
 * bytes path" per file and a last line "sha256 end" over the lines before it. It may be taken while
 * the server runs: objects never change, and a lock keeps the server from deleting any from before
 * the database is dumped until all are copied. It appears under its name only when it is complete
 * and synced. Objects of a bucket are copied to objects/ (backup_bucket.h). A restore checks every
 * file against the manifest before it creates anything, and the data folder appears under its name
 * only when it is complete, too.
 *
 * Backup and restore compare their copy of the objects with the database: each object that a row
 * names must exist with the size and the digest of the row, and each block of the store must match
 * its checksums (api/ops/object_verify.h). Each object that differs is named on standard error, and
 * nothing is created unless allow_damaged is set.
 */
#ifndef API_OPS_BACKUP_H
#define API_OPS_BACKUP_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct settings;

struct backup_options {
    bool verify_only;   /* compare, create nothing */
    bool allow_damaged; /* report missing or damaged objects, and continue */
};

/*
 * Backs up the data folder in settings (whether its server runs or not) and the database, to the
 * new folder target. With verify_only, creates nothing: if target is NULL, it compares all objects
 * of the data folder with the database; otherwise target is the folder of a backup, and its files
 * are compared with its manifest. Errors: ERR_CORRUPT (an object or file is missing or damaged).
 */
enum err_code backup_run(struct settings *settings, const char *target,
                         const struct backup_options *options, struct err *err) MUST_USE;

/* Restores the backup source into the data folder in settings, which must be absent or empty. With
 * a database URL the dump goes there, into an empty database; with a bucket the objects go there,
 * under an unused prefix. So a server can be moved between folder and bucket. */
enum err_code backup_restore(struct settings *settings, const char *source,
                             const struct backup_options *options, struct err *err) MUST_USE;

#endif

/*
 * backup: `perfoliod backup` and `perfoliod restore`: copies everything of a data folder to one
 * folder, and back.
 *
 * A backup is a folder, readable by its creator only. It contains database.dump (pg_dump's custom
 * format), the folders objects/ and tls/ as they are in the data folder, and manifest.txt: a line
 * "SHA256 BYTES PATH" for each file, and a last line "SHA256 end" with the digest of all lines
 * before it. A backup may be taken while the server runs: objects never change, and from before the
 * dump until the last object is copied a lock prevents the server from deleting objects
 * (SERVER_SWEEP_LOCK of api/core/server.h). The folder appears under its name only when it is
 * complete and synced. Objects of a bucket are copied to objects/ (backup_bucket.h). A restore
 * compares every file with the manifest before it creates anything (with allow_damaged, it
 * continues without missing objects and with damaged ones), and the data folder, too, appears under
 * its name only when it is complete.
 *
 * Backup and restore compare their copy of the objects with the database: each object that a row
 * names must exist with the size and the digest of the row, and each block of the store must match
 * its checksums (api/ops/object_verify.h). Each object that differs is named on standard error.
 * Then nothing is created, unless allow_damaged is set. One thread.
 */
#ifndef API_OPS_BACKUP_H
#define API_OPS_BACKUP_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct settings;

struct backup_options {
    bool verify_only;   /* for backup_run: compare, create nothing */
    bool allow_damaged; /* report missing or damaged objects, and continue */
};

/*
 * Does one of three things, none of which needs the server to run or to be stopped:
 *
 *   without verify_only         backs up the data folder in settings and its database, to the new
 *                               folder target
 *   verify_only, target NULL    compares all objects of the data folder with the database; creates
 *                               nothing
 *   verify_only, with target    compares the files of the backup in the folder target with its
 *                               manifest; creates nothing and ignores allow_damaged
 *
 * Errors: ERR_CORRUPT (an object or file is missing or damaged), ERR_CONFLICT (target exists; or
 * the database and the objects do not belong together, storage_identity.h),
 * ERR_BUSY (the lock could not be taken or was lost, or the objects cannot be reached),
 * ERR_NOT_FOUND (there is no such backup or data folder), ERR_IO, ERR_DATABASE.
 */
enum err_code backup_run(struct settings *settings, const char *target,
                         const struct backup_options *options, struct err *err) MUST_USE;

/* Restores the backup in the folder backup_path into the data folder in settings, which must be
 * absent or empty. With a database URL the dump goes into that database, which must be empty; with
 * a bucket the objects go there, under an unused prefix. So a server can be moved between folder
 * and bucket. Does not use verify_only. Errors: ERR_CORRUPT (the backup differs from its manifest,
 * or an object from its row), ERR_NOT_FOUND (there is no such backup), ERR_CONFLICT (the data
 * folder or the bucket is not empty; or no version that this one can upgrade made the backup),
 * ERR_IO, ERR_DATABASE. */
enum err_code backup_restore(struct settings *settings, const char *backup_path,
                             const struct backup_options *options, struct err *err) MUST_USE;

#endif

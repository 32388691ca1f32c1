/*
 * backup: `perfoliod backup` and `perfoliod restore`: all that a data folder holds, in one folder.
 *
 * A backup is a folder, readable by its maker only: database.dump (pg_dump's custom format), the
 * folders objects/ and tls/ as they are in the data folder, and manifest.txt with one line
 * "sha256 bytes path" per file and a last line "sha256 end" over the lines before it. It may be
 * taken while the server runs: objects never change, and a lock keeps the server from deleting any
 * from before the database is dumped until all are copied. It appears under its name only when it
 * is complete and synced. Objects of a bucket are copied to objects/ (backup_bucket.h). A
 * restore checks every file against the manifest before it makes
 * anything, and the data folder appears under its name only when it is complete, too.
 */
#ifndef API_BACKUP_H
#define API_BACKUP_H

#include "lib/base/err.h"

struct settings;

/* Of settings' data folder (its server runs or not) and database, to the new folder target. */
enum err_code backup_run(struct settings *settings, const char *target, struct err *err) MUST_USE;

/*
 * From the backup source into settings' data folder, which must be absent or empty. With a database
 * URL the dump goes there, into an empty database; with a bucket the objects do, under a prefix
 * without any. So a server moves between folder and bucket.
 */
enum err_code backup_restore(struct settings *settings, const char *source,
                             struct err *err) MUST_USE;

#endif

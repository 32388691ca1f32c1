/*
 * backup: `perfoliod backup` and `perfoliod restore`: database and objects in one folder.
 *
 * A backup is a folder: database.dump (pg_dump's custom format), objects/…, and manifest.txt, one
 * line "sha256  bytes  path" per file and its own hash at the end. It is taken while the server
 * runs: objects never change, and a lock keeps the server from deleting any from before the
 * database is dumped until all are copied. A backup appears under its name when it is complete.
 * Restore checks every file against the manifest before it makes a data folder that is not there
 * yet or empty; `perfoliod serve` then starts on it as on any other.
 */
#ifndef API_BACKUP_H
#define API_BACKUP_H

#include "lib/base/err.h"

struct settings;

/* Of settings' data folder (its server runs or not) or database URL, to the new folder target. */
enum err_code backup_run(struct settings *settings, const char *target, struct err *err) MUST_USE;

/* From the backup source into settings' data folder, which must be absent or empty. */
enum err_code backup_restore(struct settings *settings, const char *source,
                             struct err *err) MUST_USE;

#endif

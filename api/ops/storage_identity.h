/*
 * pairing: a database and the one folder of objects, or bucket and prefix, that goes with it.
 *
 * A database that meets another's objects would take its own shares for lost, and the objects for
 * left over, and have them swept. So both hold the same id: the database in the table
 * object_folder, the folder in .database-id, a bucket in the object database-id, made at the first
 * start and compared at each later one. Any number of servers may share a database and a bucket. A
 * private cluster lies in the data folder itself and needs no id for the objects there;
 * data_folder.h says how a folder with one and a folder without are kept apart. Backups hold no id:
 * what is restored is a new pair.
 *
 * An id is given only to what belongs together already: one side names what the other has, or both
 * are empty. The row is committed first, as not confirmed, then the file or object is made durable,
 * then the row is confirmed; so a start that is killed in between is told from a place that never
 * had an id, and another place that comes after it gets a new one.
 */
#ifndef API_OPS_STORAGE_IDENTITY_H
#define API_OPS_STORAGE_IDENTITY_H

#include "lib/base/err.h"

struct pg_connection;
struct settings;

/*
 * On a connection of the schema's owner, as the user who owns the objects. Handles: ERR_CONFLICT
 * (they do not belong together; the message says what to do), ERR_CORRUPT (what is there is no id),
 * ERR_IO, ERR_DATABASE, and of a bucket what object_store_setup_open does.
 */
enum err_code storage_identity_check(struct pg_connection *connection,
                                     const struct settings *settings, struct err *err) MUST_USE;
/* The same, changing nothing; a database that no start has brought up to date yet passes. */
enum err_code storage_identity_verify(struct pg_connection *connection,
                                      const struct settings *settings, struct err *err) MUST_USE;

#endif

/*
 * pairing: an external database and the one folder of objects that goes with it.
 *
 * A database that meets another folder's objects would take its own shares for lost, and the
 * folder's objects for left over, and have them swept. So both hold the same id: the database in
 * the table object_folder, the folder in .database-id, made at the first start and compared at each
 * later one. A private cluster lies in the data folder itself and needs none; data_folder.h says
 * how a folder with one and a folder without are kept apart. Backups hold no id: what is restored
 * is a new pair.
 *
 * An id is given only to what belongs together already: one side names what the other has, or both
 * are empty. The row is committed first, as not confirmed, then the file is made durable, then the
 * row is confirmed; so a start that is killed in between is told from a folder that never had an
 * id, and another folder that comes after it gets a new one.
 */
#ifndef API_PAIRING_H
#define API_PAIRING_H

#include "lib/base/err.h"

struct pg_connection;

/*
 * On a connection of the schema's owner, as the user who owns the objects, in data_dir/objects.
 * Handles: ERR_CONFLICT (they do not belong together; the message says what to do), ERR_CORRUPT
 * (the file holds no id), ERR_IO, ERR_DATABASE.
 */
enum err_code pairing_check(struct pg_connection *connection, const char *data_dir,
                            struct err *err) MUST_USE;
/* The same, changing nothing; a database that no start has brought up to date yet passes. */
enum err_code pairing_verify(struct pg_connection *connection, const char *data_dir,
                             struct err *err) MUST_USE;

#endif

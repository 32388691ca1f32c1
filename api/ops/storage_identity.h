/*
 * storage_identity: checks that a database and a folder of objects, or a bucket and prefix, belong
 * together.
 *
 * A database that met another's objects would report its own shares as lost, and sweep the objects
 * as orphans. So both contain the same id: the database in the table object_folder, the folder in
 * .database-id, a bucket in the object database-id. It is created at the first start and compared
 * at each later one. Any number of servers may share a database and a bucket. A private cluster is
 * in the data folder itself and needs no id for the objects there; data_folder.h describes how a
 * folder with a cluster and one without are distinguished. Backups contain no id: a restore creates
 * a new pair.
 *
 * An id is given only to a database and a storage that belong together already: one of them
 * contains an object that the other names, or both are empty. The row is committed first, as not
 * confirmed; then the file or object is made durable; then the row is confirmed. If a start
 * is killed in between, the next one finds a row that is not confirmed: storage with that id gets
 * its confirmation, and storage without an id gets a new one.
 */
#ifndef API_OPS_STORAGE_IDENTITY_H
#define API_OPS_STORAGE_IDENTITY_H

#include "lib/base/err_code.h"

struct pg_connection;
struct settings;

/* On a connection of the schema's owner, as the user who owns the objects. Errors: ERR_CONFLICT
 * (they do not belong together; the message states what to do), ERR_CORRUPT (the stored id is
 * malformed), ERR_IO, ERR_DATABASE, and for a bucket the codes of object_store_setup_open. */
enum err_code storage_identity_check(struct pg_connection *connection,
                                     const struct settings *settings, struct err *err) MUST_USE;
/* As storage_identity_check without changes; accepts a database that no start has migrated yet. */
enum err_code storage_identity_verify(struct pg_connection *connection,
                                      const struct settings *settings, struct err *err) MUST_USE;

#endif

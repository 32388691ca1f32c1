/*
 * migrate: updates the database's tables with the numbered SQL files in the executable.
 *
 * Files api/migrations/NNNN_name.sql are applied in order, each in one transaction together with
 * its row in schema_migration, under an advisory lock, so that any number of servers may start at
 * once. The SHA-256 of each applied file is compared first. A file of a release must never change,
 * so a difference means that the database was created by a development version; it is refused
 * before anything is applied. A change of the schema is a new file. Threads: any.
 */
#ifndef API_OPS_MIGRATE_H
#define API_OPS_MIGRATE_H

#include "lib/base/err_code.h"

#include <stdbool.h>

struct pg_connection;

/* On a connection of the schema's owner. Errors: ERR_CONFLICT (the database was created by a newer
 * or a development version; the message states what to do), ERR_DATABASE. */
enum err_code migrate_run(struct pg_connection *connection, int *ret_applied_count,
                          struct err *err) MUST_USE;

/* Compares the database, which has the table schema_migration, with this version and changes
 * nothing. *ret_is_current: false if migrations are missing. Errors: as migrate_run. */
enum err_code migrate_check(struct pg_connection *connection, bool *ret_is_current,
                            struct err *err) MUST_USE;

/* As migrate_run, for an external database, on a connection of the user that --database-url names.
 * Errors also: ERR_FORBIDDEN (the user is a superuser or bypasses row-level security, or is not a
 * member of the roles that it needs; the message states what to do). */
enum err_code migrate_run_external(struct pg_connection *connection, int *ret_applied_count,
                                   struct err *err) MUST_USE;

#endif

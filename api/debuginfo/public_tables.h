/*
 * public_tables: keeps the symbol tables that were built from files of public debuginfod servers
 * within the setting debuginfod-cache-bytes.
 *
 * No team is charged for these tables, and anyone who uploads a profile decides which are fetched.
 * When all together have more bytes than the setting, the tables that no result has used for the
 * longest are deleted. A deleted table that is needed is fetched again. Uses are noted in memory
 * and written by background work; of one table at most once an hour by each server. Threads: any.
 */
#ifndef API_DEBUGINFO_PUBLIC_TABLES_H
#define API_DEBUGINFO_PUBLIC_TABLES_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;
struct pg_connection;
struct public_tables;
struct server;

/* now_ns is clock_monotonic_ns, or a test's clock. */
struct public_tables *public_tables_create(int64_t (*now_ns)(void));
void public_tables_destroy(struct public_tables *tables); /* NULL is a no-op */

/* Notes that a result uses the table of a build id, in the form of build_id_normalize. */
void public_tables_note_use(struct public_tables *tables, const char *build_id);
/* Returns the noted build ids as an array in PostgreSQL's form, in arena, and forgets them; NULL if
 * there are none. */
const char *public_tables_take_uses(struct public_tables *tables, struct arena *arena);
/* Notes again what public_tables_take_uses returned, because it could not be written. Uses for
 * which there is no space are noted by the next result. */
void public_tables_give_uses(struct public_tables *tables, const char *build_ids);

/* Writes the noted uses; if that fails, they stay noted. Called often, by background work. Errors:
 * ERR_DATABASE. */
enum err_code public_tables_write_uses(struct server *server, struct err *err) MUST_USE;

/* Checks that a new table of that many bytes can stay: with the sixteenth that
 * public_tables_free_space keeps free, it fits the setting. Errors: ERR_TOO_LARGE. */
enum err_code public_tables_check_size(const struct server *server, int64_t bytes,
                                       struct err *err) MUST_USE;

/* Deletes tables if all together exceed the setting, until a sixteenth of it is free. In a
 * transaction of perfolio_jobs that stores a table, or on its own. Errors: ERR_DATABASE. */
enum err_code public_tables_free_space(const struct server *server,
                                       struct pg_connection *connection, struct arena *arena,
                                       struct err *err) MUST_USE;

#endif

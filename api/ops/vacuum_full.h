/*
 * vacuum_full: returns the space of deleted shares in the private cluster to the disk.
 *
 * A deleted row leaves free space in the files of its table, which PostgreSQL uses for new rows
 * but returns to the disk only at the end of a file. On a full disk no new rows are stored, so
 * deletions would not end that state. VACUUM FULL copies the rows of a table into a new file
 * without the free space. It locks the table meanwhile, so it is used only on a full disk, and only
 * if it frees more than it writes. The tables are those whose rows have long texts: share and
 * share_comment. Threads: any.
 */
#ifndef API_OPS_VACUUM_FULL_H
#define API_OPS_VACUUM_FULL_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct pg_connection;

/* Whether VACUUM FULL of tables with table_bytes, of which at most live_bytes are in use, is worth
 * its lock. */
bool vacuum_full_is_useful(uint64_t table_bytes, uint64_t live_bytes);
/* Whether a disk with free_bytes has space for the new files, beside 16 MiB for a segment of
 * PostgreSQL's log. */
bool vacuum_full_has_space(uint64_t live_bytes, uint64_t free_bytes);

/* Runs VACUUM FULL if it is useful and has space. connection is of a superuser, who sees all
 * transactions; path is on the disk of the cluster. Errors: ERR_BUSY (the tables or their deleted
 * rows are in use; try again later). */
enum err_code vacuum_full_if_useful(struct pg_connection *connection, const char *path,
                                    struct err *err) MUST_USE;

#endif

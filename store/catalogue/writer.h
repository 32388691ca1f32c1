/*
 * writer: this server's id in the catalogue, which is part of the key of every object that it puts.
 *
 * The id is registered on first use, since the database may start later than the server, and again
 * after it was lost. Threads: any. Private to store/.
 */
#ifndef STORE_CATALOGUE_WRITER_H
#define STORE_CATALOGUE_WRITER_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct pg_pool;
struct writer;

/* name is for people; it is copied. */
struct writer *writer_create(struct pg_pool *jobs_database, const char *name);
/* Ends the id in the catalogue. If that fails, other servers end it after a minute. NULL is a
 * no-op. */
void writer_destroy(struct writer *writer);

/* Registers an id when there is none. Handles: ERR_DATABASE. */
enum err_code writer_get(struct writer *writer, int64_t *ret_id, struct err *err) MUST_USE;
/* The id, or 0 when none is registered. */
int64_t writer_peek(struct writer *writer);
/* Forgets an id that another server has ended: the next writer_get registers a new one. */
void writer_lose(struct writer *writer, int64_t id);
/* Ends an id under which objects may exist that no row names: only the objects of ended writers are
 * searched for orphans. The next writer_get registers a new one. */
void writer_end(struct writer *writer, int64_t id);

#endif

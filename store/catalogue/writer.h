/*
 * writer: this server's number in the catalogue, which stands in the keys of all that it puts.
 *
 * It is registered when it is first needed, since the database may come later than the server, and
 * anew after it was lost. Threads: any. Private to the room.
 */
#ifndef STORE_CATALOGUE_WRITER_H
#define STORE_CATALOGUE_WRITER_H

#include "lib/base/err.h"

#include <stdint.h>

struct pg_pool;
struct writer;

/* name, for people, is copied. */
struct writer *writer_create(struct pg_pool *jobs_database, const char *name);
/* Tells the catalogue that it ends; where that fails, others end it after a minute. NULL is a
 * no-op. */
void writer_destroy(struct writer *writer);

/* Handles: ERR_DATABASE. */
enum err_code writer_get(struct writer *writer, int64_t *ret_id, struct err *err) MUST_USE;
/* The number, or 0 where none is registered. */
int64_t writer_peek(struct writer *writer);
/* id was ended by others: the next writer_get registers anew. */
void writer_lose(struct writer *writer, int64_t id);
/* Ends id, which may have left objects that no row names: only those of ended writers are looked
 * for. The next writer_get registers anew. */
void writer_end(struct writer *writer, int64_t id);

#endif

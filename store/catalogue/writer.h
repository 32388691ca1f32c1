/*
 * writer: this server's id in the catalogue, which is part of the key of every object that it puts.
 *
 * The id is registered on first use, since the database may start later than the server, and again
 * after it was lost or ended. An id under which an object may exist that no row names has to end,
 * because only the objects of ended writers are searched for orphans (store/maintain/orphans.h).
 * The id does not end at once: a bucket that refuses each put would end an id per flush, and each
 * of them would be searched. Threads: any. Private to store/.
 */
#ifndef STORE_CATALOGUE_WRITER_H
#define STORE_CATALOGUE_WRITER_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct pg_pool;
struct writer;

enum { WRITER_AGE_S = 10 };

/* name is for people; it is copied. */
struct writer *writer_create(struct pg_pool *jobs_database, const char *name);
/* Ends the id in the catalogue. If that fails, other servers end it after a minute. NULL is a
 * no-op. */
void writer_destroy(struct writer *writer);

/* Registers an id when there is none. Errors: ERR_DATABASE. */
enum err_code writer_get(struct writer *writer, int64_t *ret_id, struct err *err) MUST_USE;
/* The id, or 0 when none is registered. */
int64_t writer_peek(struct writer *writer);
/* Forgets an id that another server has ended: the next writer_get registers a new one. */
void writer_lose(struct writer *writer, int64_t id);
/* Ends an id: the next writer_get registers a new one. */
void writer_end(struct writer *writer, int64_t id);

/* Notes that a put or a commit failed, so an object may exist under the id that no row names. */
void writer_doubt(struct writer *writer, int64_t id);
/* Notes that a row names an object that was put under the id: the object store and the database
 * work. */
void writer_confirm(struct writer *writer, int64_t id);
/*
 * Ends the id if it is in doubt, was confirmed since then, and is at least WRITER_AGE_S old at
 * now_ns (clock_monotonic_ns). An outage of any length ends one id, and failures that come and go
 * end one in WRITER_AGE_S. Call it while no merge uses the id: the merge could not commit.
 */
void writer_end_doubted(struct writer *writer, int64_t now_ns);

#endif

/*
 * catalogue: the tables of api/migrations/0008_store.sql: which segments and blocks exist.
 *
 * The only file of this room that knows SQL. A flush is one transaction: catalogue_begin_flush says
 * which batches are new and locks them, then the segment is put, catalogue_commit_flush makes it
 * exist. Whatever goes wrong before leaves nothing but an object that nobody knows.
 * Threads: any; a struct catalogue_flush belongs to one.
 */
#ifndef STORE_CATALOGUE_H
#define STORE_CATALOGUE_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct pg_connection;
struct pg_pool;

/* Registers a writer; its number stands in the keys of all that it puts. */
enum err_code catalogue_open_writer(struct pg_pool *jobs, const char *name, int64_t *ret_writer_id,
                                    struct err *err) MUST_USE;
/* It writes no more. */
enum err_code catalogue_close_writer(struct pg_pool *jobs, int64_t writer_id,
                                     struct err *err) MUST_USE;

/* One batch of a flush, as a block in memory. */
struct catalogue_part {
    int64_t tenant_id;
    const uint8_t *batch_id; /* 32 bytes, or NULL */
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t row_count;
    uint64_t offset; /* in the segment; set before the commit */
    uint64_t bytes;
    enum {
        CATALOGUE_NEW,
        CATALOGUE_DUPLICATE, /* its batch id is known */
        CATALOGUE_NO_TENANT
    } state;
};

/*
 * Begins the transaction and sets the state of each part. Waits for flushes of others that have
 * one of the same batch ids in hand. After a failure the connection is as before.
 */
enum err_code catalogue_begin_flush(struct pg_connection *connection, struct arena *arena,
                                    struct catalogue_part *parts, uint32_t count,
                                    struct err *err) MUST_USE;

/*
 * Commits the segment: of each tenant the new parts, which stand together in it and in order.
 * Handles: ERR_CONFLICT (this writer was ended, since it had not been seen for long), ERR_DATABASE
 * (err->is_disconnect: whether it was committed is not known).
 */
enum err_code catalogue_commit_flush(struct pg_connection *connection, struct arena *arena,
                                     int64_t writer_id, const char *object_key, uint64_t bytes,
                                     const struct catalogue_part *parts, uint32_t count,
                                     struct err *err) MUST_USE;

/* A block somewhere in an object. */
struct catalogue_place {
    const char *object_key;
    uint64_t offset;
    uint64_t bytes; /* 0: the whole object */
    uint32_t level; /* 0: in a segment */
};

/* All blocks of a tenant that may hold profiles with start <= begin < end, oldest objects first. In
 * arena. */
enum err_code catalogue_find(struct pg_pool *database, struct arena *arena, int64_t tenant_id,
                             int64_t start_ns, int64_t end_ns,
                             const struct catalogue_place **ret_places, uint32_t *ret_count,
                             struct err *err) MUST_USE;

#endif

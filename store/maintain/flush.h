/*
 * flush: batches of many requests become one segment: one object, one transaction.
 *
 * One thread. It waits until the first batch has waited for the interval, or enough bytes or
 * requests wait, then writes all that is there, while the next ones gather. Where others are on
 * their way at the interval's end it waits for them, up to three times as long: a flush costs as
 * much for one request as for twenty, and who sends that much waits for the processor anyway. What
 * is put but not committed (the server died in between, or the commit failed) is an object that
 * nobody knows, and a put that failed may have made one: the writer whose number it has is then
 * ended, so that it is collected. The thread registers as a writer with its first flush, and again
 * after that, or when it has been ended because it was not seen for long. Private to the room.
 */
#ifndef STORE_MAINTAIN_FLUSH_H
#define STORE_MAINTAIN_FLUSH_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "store/block/block_write.h"

#include <stdbool.h>
#include <stdint.h>

struct object_store;
struct pg_pool;
struct flusher;
struct writer;

enum {
    FLUSH_INTERVAL_MS = 25,
    FLUSH_EXTRA_WAIT_MS = 50, /* longer for those on their way, at most */
    FLUSH_WAITING_BYTES = 64 << 20,
    FLUSH_SEGMENT_BYTES = 8 << 20,
    FLUSH_STUCK_MS = 1000
};

struct flush_options {
    struct object_store *objects;
    struct pg_pool *jobs_database;
    struct writer *writer; /* outlives the flusher */
    int64_t retention_s;   /* of tenants without one of their own; 0: for ever */
    int interval_ms;
    /* So many are company enough, and while a flush is stuck no more may wait; 0: any number. */
    int max_waiting_requests;
    size_t max_waiting_bytes;
    /* Called by the flusher's thread for each block that is in the catalogue; it may take the
     * bytes. */
    void (*keep)(void *context, int64_t tenant_id, const char *object_key, uint64_t offset,
                 struct buf *block);
    void *keep_context;
};

enum err_code flusher_create(const struct flush_options *options, struct flusher **ret_flusher,
                             struct err *err) MUST_USE;
/* Flushes what waits and ends the thread. NULL is a no-op. */
void flusher_destroy(struct flusher *flusher);

/* A request is on its way: one flusher_append follows, or flusher_cancel_expected. */
void flusher_expect(struct flusher *flusher);
void flusher_cancel_expected(struct flusher *flusher);

/* One batch of a request. */
struct flush_item {
    struct buf block; /* emptied */
    struct block_summary summary;
    uint32_t cut_string_count;
    const uint8_t *batch_id; /* or NULL */
    const uint64_t *series;  /* hashes of those with profiles */
    uint32_t series_count;
    bool is_duplicate; /* set on success */
};

/*
 * Of a request that was expected. Waits until the blocks are durable and in the catalogue, or known
 * not to be: they go into one transaction, so all of them are kept or none. A flush that begins
 * after deadline_ns leaves them out, and the statements of the one that has them end by then (0: 15
 * s from now). Handles: what store_append does.
 */
enum err_code flusher_append(struct flusher *flusher, int64_t tenant_id, struct flush_item *items,
                             uint32_t count, int64_t deadline_ns, struct err *err) MUST_USE;

#endif

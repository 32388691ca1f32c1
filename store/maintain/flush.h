/*
 * flush: writes the batches of many requests as one segment: one object, one transaction.
 *
 * A flush begins when the first batch has waited for the interval, or when enough bytes or requests
 * wait. One thread writes the waiting batches as a segment while the next batches collect. A flush
 * takes at most 2,048 batches of one team, or a single request if that has more, so that many small
 * batches delay no other team. If requests are still being decoded at the end of the interval, the
 * thread waits for them for twice the interval more, at most FLUSH_EXTRA_WAIT_MS, because a flush
 * costs as much for one request as for twenty.
 *
 * If the server dies between the put and the commit, or the commit fails, no row names the object.
 * A put that failed may also have written an object. The writer whose id is in the object's key is
 * then in doubt (store/catalogue/writer.h): it ends once a later flush has succeeded, so that the
 * search for orphans finds and deletes the object. The thread registers as a writer with its first
 * flush, and again after its id was ended. Private to store/.
 */
#ifndef STORE_MAINTAIN_FLUSH_H
#define STORE_MAINTAIN_FLUSH_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "store/block/block_write.h"

#include <stdbool.h>
#include <stdint.h>

struct object_store;
struct pg_pool;
struct flusher;
struct writer;

enum {
    FLUSH_INTERVAL_MS = 25,         /* default of interval_ms */
    FLUSH_EXTRA_WAIT_MS = 50,       /* extra wait for requests that are being decoded, at most */
    FLUSH_WAITING_BYTES = 64 << 20, /* default of max_waiting_bytes */
    FLUSH_SEGMENT_BYTES = 8 << 20,  /* a flush begins when so many bytes wait */
    FLUSH_STUCK_MS = 1000           /* a flush that takes longer is stuck */
};

struct flush_options {
    struct object_store *objects;
    struct pg_pool *jobs_database;
    struct writer *writer; /* outlives the flusher */
    int64_t retention_s;   /* for tenants without a retention of their own; 0: for ever */
    int interval_ms;       /* 0: FLUSH_INTERVAL_MS */
    /* A flush starts when so many requests wait. While a flush is stuck, a request is refused
     * if the flush and the list of waiting requests together have so many. 0: any number. */
    int max_waiting_requests;
    size_t max_waiting_bytes; /* of batches that wait or are being written; 0: 64 MiB */
    /* Called by the flusher's thread for each committed block; it may take the bytes. */
    void (*keep)(void *context, int64_t tenant_id, const char *object_key, uint64_t offset,
                 struct buf *block);
    void *keep_context;
};

enum err_code flusher_create(const struct flush_options *options, struct flusher **ret_flusher,
                             struct err *err) MUST_USE;
/* Flushes what waits and ends the thread. NULL is a no-op. */
void flusher_destroy(struct flusher *flusher);

/*
 * Announces a request that is being decoded: one flusher_append or flusher_cancel_expected follows.
 */
void flusher_expect(struct flusher *flusher);
void flusher_cancel_expected(struct flusher *flusher);

/* One batch of a request. */
struct flush_item {
    struct buf block; /* emptied by flusher_append */
    struct block_summary summary;
    uint32_t cut_string_count;
    const uint8_t *batch_id; /* or NULL */
    const uint64_t *series;  /* hashes of the series that have profiles */
    uint32_t series_count;
    bool is_duplicate; /* set on success */
};

/*
 * Adds the batches of an expected request and waits until they are durable and in the catalogue, or
 * known not to be; one transaction contains all of them. A flush that begins after deadline_ns
 * leaves them out, and the statements of the one that contains them end by then (0: 15 s from now).
 * Errors: as store_append.
 */
enum err_code flusher_append(struct flusher *flusher, int64_t tenant_id, struct flush_item *items,
                             uint32_t count, int64_t deadline_ns, struct err *err) MUST_USE;

#endif

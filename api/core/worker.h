/*
 * worker: a pool of threads for work that may block, behind a bounded queue.
 *
 * Jobs run in the order they came. The queue is bounded by number and by bytes (what a job says it
 * holds, counted until it has run), so that overload is refused at the door instead of piling up.
 * Threads: submit from any; run is called on one worker thread; jobs never touch h2o.
 */
#ifndef API_CORE_WORKER_H
#define API_CORE_WORKER_H

#include "lib/base/err.h"

#include <stddef.h>

struct worker_pool;

/* Embedded at the start of the caller's own job; the pool keeps only the pointer. */
struct worker_job {
    struct worker_job *next;              /* the pool's */
    void (*run)(struct worker_job *self); /* may free self */
    size_t bytes;                         /* what it keeps in memory while queued or running */
};

struct worker_pool *worker_pool_create(int thread_count, int max_queued, size_t max_bytes);
/* Runs what is queued, then ends the threads. NULL is a no-op. */
void worker_pool_destroy(struct worker_pool *pool);

/*
 * Queues job. Handles: ERR_BUSY (queue full in number or bytes, retry_after_s set): the job is the
 * caller's again.
 */
enum err_code worker_submit(struct worker_pool *pool, struct worker_job *job,
                            struct err *err) MUST_USE;
/* As worker_submit, past the limits: for the next piece of something already admitted. */
void worker_submit_admitted(struct worker_pool *pool, struct worker_job *job);

/* For metrics. */
int worker_queue_depth(struct worker_pool *pool);
int worker_running_count(struct worker_pool *pool);

#endif

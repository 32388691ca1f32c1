/*
 * worker: a pool of threads for work that may block, behind a bounded queue.
 *
 * Jobs run in the order in which they were queued. The queue is bounded by number and by bytes
 * (what a job declares to hold, counted until it has run), so an overloaded server refuses work
 * instead of queueing it. Threads: submit from any; run is called on one worker thread; jobs never
 * use h2o.
 */
#ifndef API_CORE_WORKER_H
#define API_CORE_WORKER_H

#include "lib/base/err_code.h"

#include <stddef.h>

struct worker_pool;

/* Embedded at the start of the caller's own job; the pool keeps only the pointer. */
struct worker_job {
    struct worker_job *next;              /* for the pool */
    void (*run)(struct worker_job *self); /* may free self */
    size_t bytes;                         /* the memory that it keeps while queued or running */
};

struct worker_pool *worker_pool_create(int thread_count, int max_queued, size_t max_bytes);
/* Runs the queued jobs, then ends the threads. NULL is a no-op. */
void worker_pool_destroy(struct worker_pool *pool);

/* Queues job. Handles: ERR_BUSY (the queue is full in number or bytes; retry_after_s is set): the
 * job still belongs to the caller. */
enum err_code worker_submit(struct worker_pool *pool, struct worker_job *job,
                            struct err *err) MUST_USE;
/* As worker_submit, without the limits: for the next piece of work that was admitted before. */
void worker_submit_admitted(struct worker_pool *pool, struct worker_job *job);

/* For metrics. */
int worker_queue_depth(struct worker_pool *pool);
int worker_running_count(struct worker_pool *pool);

#endif

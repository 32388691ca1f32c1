/*
 * worker: a pool of threads for work that may block, behind a bounded queue.
 *
 * Jobs start in the order in which they were queued. Two limits make an overloaded server refuse
 * work instead of queueing it: the number of queued jobs, and the sum of worker_job.bytes of the
 * jobs that are queued or running. Threads: worker_submit may be called on any thread; a job's run
 * is called once, on one of the pool's threads; jobs never use h2o.
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
/* As worker_submit, without the limits: for the next step of work whose first step was accepted. */
void worker_submit_admitted(struct worker_pool *pool, struct worker_job *job);

/* For metrics. */
int worker_queue_depth(struct worker_pool *pool);
int worker_running_count(struct worker_pool *pool);

#endif

/*
 * worker: a pool of threads for work that may block, behind a bounded queue.
 *
 * Clients are served round robin: a free thread runs the first job of the client whose last job was
 * started longest ago, and a client's jobs run in the order in which they were queued. So a client
 * with many queued jobs delays another client by one of them.
 *
 * Limits make an overloaded server refuse work instead of queueing it:
 *
 *   - the number of queued jobs. If the queue is full, a job replaces the last one of the client
 *     with the most, if that client has at least two more than its own;
 *   - the sum of worker_job.bytes, from worker_submit to worker_release, whether a job is queued,
 *     runs, or waits elsewhere in between. While nothing is counted, one job of any size is
 *     accepted;
 *   - a client has at most a quarter of the entries of the queue, or 16 in a short one, and at most
 *     as many bytes as remain free: alone a half of all bytes, beside another client a third.
 *
 * Threads: worker_submit and worker_release may be called on any thread; a job's run is called on
 * one of the pool's threads; jobs never use h2o.
 */
#ifndef API_CORE_WORKER_H
#define API_CORE_WORKER_H

#include "lib/base/err_code.h"

#include <stddef.h>
#include <stdint.h>

enum { WORKER_MIN_QUEUED_OF_CLIENT = 16 };

struct worker_pool;
struct worker_client;

/* Embedded at the start of the caller's own job; the pool keeps only the pointer. */
struct worker_job {
    struct worker_job *next;              /* set by the pool only */
    struct worker_client *owner;          /* set by the pool only; NULL: its bytes do not count */
    void (*run)(struct worker_job *self); /* may free self, if the pool does not count its bytes */
    void (*refuse)(struct worker_job *self); /* called instead of run when another job has replaced
                                                it, on the thread that submits the other job; NULL:
                                                this job is never replaced */
    uint64_t client; /* a number of the client that sent it; 0: no client, so the limits per
                        client do not apply */
    size_t bytes;    /* the memory that it keeps; constant until worker_release */
};

/* Starts thread_count > 0 threads, or fewer if the system allows no more, but at least one. The
 * limits are explained above. */
struct worker_pool *worker_pool_create(int thread_count, int max_queued, size_t max_bytes);
/* Runs the queued jobs, then ends the threads. Jobs can still be released. */
void worker_pool_stop(struct worker_pool *pool);
/* Stops it first. No job may be released any more. NULL is a no-op. */
void worker_pool_destroy(struct worker_pool *pool);

/* Queues job. Errors: ERR_BUSY (a limit is reached; retry_after_s is set): the job still belongs
 * to the caller. */
enum err_code worker_submit(struct worker_pool *pool, struct worker_job *job,
                            struct err *err) MUST_USE;
/* As worker_submit, without the limits: for the next step of work whose first step was accepted.
 * Its bytes are counted once. */
void worker_submit_admitted(struct worker_pool *pool, struct worker_job *job);
/* Stops counting the job's bytes: call it when the job's memory is freed and it is not queued. Not
 * needed for a job without a client and bytes. A no-op for a job that was released already, or that
 * was not accepted. */
void worker_release(struct worker_pool *pool, struct worker_job *job);

/* For metrics. */
int worker_queue_depth(struct worker_pool *pool);
int worker_running_count(struct worker_pool *pool);
size_t worker_bytes(struct worker_pool *pool);

#endif

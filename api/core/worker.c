#include "api/core/worker.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/thread_signals.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct worker_pool {
    pthread_mutex_t lock;
    pthread_cond_t has_work;
    struct worker_job *head;
    struct worker_job **tail;
    int queued_count;
    int running_count;
    int max_queued;
    size_t bytes; /* of queued and running jobs */
    size_t max_bytes;
    bool is_ending;
    int thread_count;
    pthread_t threads[];
};

/* Called with the lock held; NULL when the pool ends. */
static struct worker_job *wait_for_job(struct worker_pool *pool)
{
    while (!pool->head) {
        if (pool->is_ending)
            return NULL;
        pthread_cond_wait(&pool->has_work, &pool->lock);
    }
    struct worker_job *job = pool->head;
    pool->head = job->next;
    if (!pool->head)
        pool->tail = &pool->head;
    job->next = NULL;
    pool->queued_count--;
    pool->running_count++;
    return job;
}

static void *run_jobs(void *argument)
{
    struct worker_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    struct worker_job *job;
    while ((job = wait_for_job(pool))) {
        size_t bytes = job->bytes;
        pthread_mutex_unlock(&pool->lock);
        job->run(job); /* may free job */
        pthread_mutex_lock(&pool->lock);
        pool->running_count--;
        pool->bytes -= bytes;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct worker_pool *worker_pool_create(int thread_count, int max_queued, size_t max_bytes)
{
    assert(thread_count > 0);
    struct worker_pool *pool =
        mem_alloc(1, sizeof(*pool) + (size_t)thread_count * sizeof(pthread_t));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->has_work, NULL);
    pool->tail = &pool->head;
    pool->max_queued = max_queued;
    pool->max_bytes = max_bytes;
    /* Only the main thread handles signals. */
    sigset_t before;
    thread_signals_block(&before);
    for (; pool->thread_count < thread_count; pool->thread_count++) {
        int failure = pthread_create(&pool->threads[pool->thread_count], NULL, run_jobs, pool);
        assert(failure == 0 || pool->thread_count > 0);
        if (failure)
            break; /* the pool works with fewer threads */
    }
    thread_signals_restore(&before);
    return pool;
}

void worker_pool_destroy(struct worker_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->has_work);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool);
}

static void append_job(struct worker_pool *pool, struct worker_job *job)
{
    job->next = NULL;
    *pool->tail = job;
    pool->tail = &job->next;
    pool->queued_count++;
    pool->bytes += job->bytes;
    pthread_cond_signal(&pool->has_work);
}

enum err_code worker_submit(struct worker_pool *pool, struct worker_job *job, struct err *err)
{
    pthread_mutex_lock(&pool->lock);
    /* A job larger than the whole bound still runs if it is alone. */
    bool is_full = pool->queued_count >= pool->max_queued ||
                   (pool->bytes > 0 && job->bytes > pool->max_bytes - pool->bytes) ||
                   pool->bytes > pool->max_bytes;
    if (!is_full)
        append_job(pool, job);
    pthread_mutex_unlock(&pool->lock);
    if (!is_full)
        return ERR_NONE;
    err_set(err, ERR_BUSY, "the server has more work than it can take now; try again soon");
    err->retry_after_s = 2;
    return ERR_BUSY;
}

void worker_submit_admitted(struct worker_pool *pool, struct worker_job *job)
{
    pthread_mutex_lock(&pool->lock);
    append_job(pool, job);
    pthread_mutex_unlock(&pool->lock);
}

int worker_queue_depth(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    int count = pool->queued_count;
    pthread_mutex_unlock(&pool->lock);
    return count;
}

int worker_running_count(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    int count = pool->running_count;
    pthread_mutex_unlock(&pool->lock);
    return count;
}

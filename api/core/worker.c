#include "api/core/worker.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/thread_signals.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

enum { CLIENT_BUCKETS = 256 };

/* A client with jobs that are queued or not released yet; freed when it has none. */
struct worker_client {
    uint64_t id;
    struct worker_client *next;          /* in its bucket */
    struct worker_client *next_in_round; /* the next client with queued jobs */
    struct worker_job *head;             /* its queued jobs */
    struct worker_job **tail;
    int queued_count;
    int job_count; /* not released */
    size_t bytes;  /* of these */
};

/* A thread without work. It waits for a semaphore of its own: a condition variable that several
 * threads wait for can lose a signal in glibc before 2.41 (bug 25847), and a queued job would then
 * wait until the next one is queued, possibly without end. */
struct idle_thread {
    struct idle_thread *next;
    sem_t wake;
};

struct worker_pool {
    pthread_mutex_t lock;
    struct idle_thread *idle; /* the last to have worked is the first */
    struct worker_client *first_in_round;
    struct worker_client **last_in_round;
    struct worker_client *buckets[CLIENT_BUCKETS];
    struct worker_client no_client; /* owns the jobs without a client */
    int queued_count;
    int running_count;
    int max_queued;
    size_t bytes; /* of all jobs that are not released */
    size_t max_bytes;
    bool is_ending;
    int thread_count;
    pthread_t threads[];
};

/* All static functions below are called with the lock held, except run_jobs, which takes it, and
 * free_clients, which runs when no thread uses the pool any more. */

/* The link to the client, or to the end of its bucket. */
static struct worker_client **find_client(struct worker_pool *pool, uint64_t id)
{
    struct worker_client **link = &pool->buckets[id % CLIENT_BUCKETS];
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

static struct worker_client *find_or_add_client(struct worker_pool *pool, uint64_t id)
{
    if (id == 0)
        return &pool->no_client;
    struct worker_client **link = find_client(pool, id);
    if (!*link) {
        *link = mem_new(struct worker_client, 1);
        (*link)->id = id;
        (*link)->tail = &(*link)->head;
    }
    return *link;
}

static void count_job(struct worker_pool *pool, struct worker_job *job)
{
    job->owner = find_or_add_client(pool, job->client);
    job->owner->job_count++;
    job->owner->bytes += job->bytes;
    pool->bytes += job->bytes;
}

static void uncount_job(struct worker_pool *pool, struct worker_job *job)
{
    struct worker_client *client = job->owner;
    job->owner = NULL;
    client->job_count--;
    client->bytes -= job->bytes;
    pool->bytes -= job->bytes;
    if (client->job_count > 0 || client == &pool->no_client)
        return;
    struct worker_client **link = find_client(pool, client->id);
    *link = client->next;
    mem_free(client);
}

static void append_to_round(struct worker_pool *pool, struct worker_client *client)
{
    client->next_in_round = NULL;
    *pool->last_in_round = client;
    pool->last_in_round = &client->next_in_round;
}

static void remove_from_round(struct worker_pool *pool, struct worker_client **link)
{
    struct worker_client *client = *link;
    *link = client->next_in_round;
    if (pool->last_in_round == &client->next_in_round)
        pool->last_in_round = link;
}

/* Removes the queued job that *link points to. */
static struct worker_job *unlink_job(struct worker_pool *pool, struct worker_client *client,
                                     struct worker_job **link)
{
    struct worker_job *job = *link;
    *link = job->next;
    if (client->tail == &job->next)
        client->tail = link;
    job->next = NULL;
    client->queued_count--;
    pool->queued_count--;
    return job;
}

/* False: no thread waits. */
static bool wake_thread(struct worker_pool *pool)
{
    struct idle_thread *thread = pool->idle;
    if (!thread)
        return false;
    pool->idle = thread->next;
    sem_post(&thread->wake);
    return true;
}

static void append_job(struct worker_pool *pool, struct worker_job *job)
{
    if (!job->owner)
        count_job(pool, job);
    struct worker_client *client = job->owner;
    job->next = NULL;
    *client->tail = job;
    client->tail = &job->next;
    if (client->queued_count++ == 0)
        append_to_round(pool, client);
    pool->queued_count++;
    (void)wake_thread(pool);
}

/* Waits until wake_thread has removed the thread from the list; releases the lock meanwhile. */
static void wait_for_wake(struct worker_pool *pool)
{
    struct idle_thread self = {.next = pool->idle};
    sem_init(&self.wake, 0, 0);
    pool->idle = &self;
    pthread_mutex_unlock(&pool->lock);
    while (sem_wait(&self.wake) != 0) { /* EINTR */
    }
    pthread_mutex_lock(&pool->lock); /* the post was made under the lock, and is over */
    sem_destroy(&self.wake);
}

/* Returns the next job of the round, after a wait if there is none; NULL when the pool ends. */
static struct worker_job *wait_for_job(struct worker_pool *pool)
{
    while (!pool->first_in_round) {
        if (pool->is_ending)
            return NULL;
        wait_for_wake(pool);
    }
    struct worker_client *client = pool->first_in_round;
    remove_from_round(pool, &pool->first_in_round);
    struct worker_job *job = unlink_job(pool, client, &client->head);
    if (client->head)
        append_to_round(pool, client);
    pool->running_count++;
    return job;
}

static void *run_jobs(void *argument)
{
    struct worker_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    struct worker_job *job;
    while ((job = wait_for_job(pool))) {
        if (job->client == 0 && job->bytes == 0)
            uncount_job(pool, job);
        pthread_mutex_unlock(&pool->lock);
        job->run(job); /* may free job */
        pthread_mutex_lock(&pool->lock);
        pool->running_count--;
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
    pool->last_in_round = &pool->first_in_round;
    pool->no_client.tail = &pool->no_client.head;
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

void worker_pool_stop(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    while (wake_thread(pool)) {
    }
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pool->thread_count = 0;
}

/* Frees the clients whose jobs were not released (worker_release). */
static void free_clients(struct worker_pool *pool)
{
    for (int i = 0; i < CLIENT_BUCKETS; i++) {
        while (pool->buckets[i]) {
            struct worker_client *client = pool->buckets[i];
            pool->buckets[i] = client->next;
            mem_free(client);
        }
    }
}

void worker_pool_destroy(struct worker_pool *pool)
{
    if (!pool)
        return;
    worker_pool_stop(pool);
    free_clients(pool);
    pthread_mutex_destroy(&pool->lock);
    mem_free(pool);
}

/* A job larger than the whole limit still runs if it is alone. */
static bool has_bytes_for(struct worker_pool *pool, const struct worker_job *job)
{
    if (pool->bytes == 0 || pool->bytes > pool->max_bytes)
        return pool->bytes == 0;
    const size_t available = pool->max_bytes - pool->bytes;
    const struct worker_client *client = job->client ? *find_client(pool, job->client) : NULL;
    const size_t held = client && job->bytes ? client->bytes : 0;
    return job->bytes <= available && held <= available - job->bytes;
}

static int queued_count_of(struct worker_pool *pool, uint64_t id)
{
    const struct worker_client *client = id ? *find_client(pool, id) : &pool->no_client;
    return client ? client->queued_count : 0;
}

static bool has_entry_for(struct worker_pool *pool, const struct worker_job *job)
{
    const int quarter = pool->max_queued / 4;
    const int most = quarter > WORKER_MIN_QUEUED_OF_CLIENT ? quarter : WORKER_MIN_QUEUED_OF_CLIENT;
    return job->client == 0 || queued_count_of(pool, job->client) < most;
}

/* The link to the last job of the client that may be replaced, or NULL. */
static struct worker_job **find_last_replaceable(struct worker_client *client)
{
    struct worker_job **last = NULL;
    for (struct worker_job **link = &client->head; *link; link = &(*link)->next) {
        if ((*link)->refuse)
            last = link;
    }
    return last;
}

/* Removes a job from the queue to make space for one of a client that has own_count queued jobs:
 * the last replaceable job of the client with the most queued jobs. NULL unless that client has at
 * least two more than own_count: with fewer, two clients would replace each other's jobs
 * alternately. */
static struct worker_job *remove_replaced(struct worker_pool *pool, int own_count)
{
    struct worker_client *most = NULL;
    int most_count = own_count + 1;
    for (struct worker_client *client = pool->first_in_round; client;
         client = client->next_in_round) {
        if (client->queued_count > most_count && find_last_replaceable(client)) {
            most = client;
            most_count = client->queued_count;
        }
    }
    struct worker_job **last = most ? find_last_replaceable(most) : NULL;
    return last ? unlink_job(pool, most, last)
                : NULL; /* most keeps at least one job, so it stays in the round */
}

enum err_code worker_submit(struct worker_pool *pool, struct worker_job *job, struct err *err)
{
    struct worker_job *replaced = NULL;
    pthread_mutex_lock(&pool->lock);
    bool is_accepted = has_bytes_for(pool, job) && has_entry_for(pool, job);
    if (is_accepted && pool->queued_count >= pool->max_queued) {
        replaced = remove_replaced(pool, queued_count_of(pool, job->client));
        is_accepted = replaced != NULL;
    }
    if (is_accepted)
        append_job(pool, job);
    pthread_mutex_unlock(&pool->lock);
    if (replaced)
        replaced->refuse(replaced);
    if (is_accepted)
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

void worker_release(struct worker_pool *pool, struct worker_job *job)
{
    pthread_mutex_lock(&pool->lock);
    if (job->owner)
        uncount_job(pool, job);
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

size_t worker_bytes(struct worker_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    size_t bytes = pool->bytes;
    pthread_mutex_unlock(&pool->lock);
    return bytes;
}

#include "tests/unit/test.h"

#include "api/core/worker.h"
#include "lib/base/err.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct gate_job {
    struct worker_job work;
    sem_t *entered;
    sem_t *opened;
};

struct count_job {
    struct worker_job work;
    atomic_int *count;
    int *order;
};

static void wait_at_gate(struct worker_job *work)
{
    struct gate_job *job = (struct gate_job *)work;
    sem_post(job->entered);
    sem_wait(job->opened);
}

static void count_up(struct worker_job *work)
{
    struct count_job *job = (struct count_job *)work;
    int place = atomic_fetch_add(job->count, 1);
    if (job->order)
        *job->order = place;
}

/* One worker that a gate blocks, so that later jobs stay queued. */
static struct worker_pool *held_pool(struct gate_job *gate, sem_t *entered, sem_t *opened,
                                     int max_queued, size_t max_bytes)
{
    struct err err;
    struct worker_pool *pool = worker_pool_create(1, max_queued, max_bytes);
    sem_init(entered, 0, 0);
    sem_init(opened, 0, 0);
    *gate = (struct gate_job){.work.run = wait_at_gate, .entered = entered, .opened = opened};
    assert_int_equal(worker_submit(pool, &gate->work, &err), ERR_NONE);
    sem_wait(entered);
    return pool;
}

static void runs_jobs_in_their_order(void **state)
{
    (void)state;
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, 10, 1000);
    atomic_int count = 0;
    int order[5];
    struct count_job jobs[5];
    for (int i = 0; i < 5; i++) {
        jobs[i] = (struct count_job){.work.run = count_up, .count = &count, .order = &order[i]};
        assert_int_equal(worker_submit(pool, &jobs[i].work, &err), ERR_NONE);
    }
    assert_int_equal(worker_queue_depth(pool), 5);
    assert_int_equal(worker_running_count(pool), 1);
    sem_post(&opened);
    worker_pool_destroy(pool);
    for (int i = 0; i < 5; i++)
        assert_int_equal(order[i], i);
}

static void refuses_more_jobs_than_it_may_queue(void **state)
{
    (void)state;
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, 2, 1000);
    atomic_int count = 0;
    struct count_job jobs[4];
    for (int i = 0; i < 4; i++)
        jobs[i] = (struct count_job){.work.run = count_up, .count = &count};
    assert_int_equal(worker_submit(pool, &jobs[0].work, &err), ERR_NONE);
    assert_int_equal(worker_submit(pool, &jobs[1].work, &err), ERR_NONE);
    assert_int_equal(worker_submit(pool, &jobs[2].work, &err), ERR_BUSY);
    assert_true(err.retry_after_s > 0);
    worker_submit_admitted(pool, &jobs[3].work);
    sem_post(&opened);
    worker_pool_destroy(pool);
    assert_int_equal(count, 3);
}

static void refuses_more_bytes_than_it_may_hold(void **state)
{
    (void)state;
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, 10, 1000);
    atomic_int count = 0;
    struct count_job half = {.work = {.run = count_up, .bytes = 600}, .count = &count};
    struct count_job other_half = half, rest = half, too_large = half;
    rest.work.bytes = 400;
    too_large.work.bytes = SIZE_MAX;
    assert_int_equal(worker_submit(pool, &half.work, &err), ERR_NONE);
    assert_int_equal(worker_submit(pool, &other_half.work, &err), ERR_BUSY);
    assert_int_equal(worker_submit(pool, &too_large.work, &err), ERR_BUSY);
    assert_int_equal(worker_submit(pool, &rest.work, &err), ERR_NONE);
    sem_post(&opened);
    worker_pool_destroy(pool);
    assert_int_equal(count, 2);
}

static void many_threads_lose_nothing(void **state)
{
    (void)state;
    enum { JOBS = 2000 };
    static struct count_job jobs[JOBS];
    struct err err;
    atomic_int count = 0;
    struct worker_pool *pool = worker_pool_create(8, JOBS, 1000000);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct count_job){.work = {.run = count_up, .bytes = 1}, .count = &count};
        assert_int_equal(worker_submit(pool, &jobs[i].work, &err), ERR_NONE);
    }
    worker_pool_destroy(pool);
    assert_int_equal(count, JOBS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_jobs_in_their_order),
        cmocka_unit_test(refuses_more_jobs_than_it_may_queue),
        cmocka_unit_test(refuses_more_bytes_than_it_may_hold),
        cmocka_unit_test(many_threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
    bool is_refused;
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

static void note_refused(struct worker_job *work)
{
    ((struct count_job *)work)->is_refused = true;
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

static void serves_clients_round_robin(void **state)
{
    (void)state;
    enum { JOBS = 9 };
    static const uint64_t clients[JOBS] = {7, 7, 7, 7, 8, 8, 263, 0, 7}; /* 7 + 256: one bucket */
    static const int places[JOBS] = {0, 4, 6, 7, 1, 5, 2, 3, 8};
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, 100, 1000);
    atomic_int count = 0;
    int order[JOBS];
    struct count_job jobs[JOBS];
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct count_job){.work = {.run = count_up, .client = clients[i], .bytes = 1},
                                     .count = &count,
                                     .order = &order[i]};
        assert_int_equal(worker_submit(pool, &jobs[i].work, &err), ERR_NONE);
    }
    sem_post(&opened);
    worker_pool_stop(pool);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(order[i], places[i]);
        worker_release(pool, &jobs[i].work);
    }
    assert_int_equal(worker_bytes(pool), 0);
    worker_pool_destroy(pool);
}

static void a_client_has_a_quarter_of_the_queue(void **state)
{
    (void)state;
    enum { PLACES = 80, QUARTER = 20 };
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, PLACES, 1000);
    atomic_int count = 0;
    struct count_job jobs[QUARTER + 2], other;
    for (int i = 0; i < QUARTER + 2; i++) {
        jobs[i] =
            (struct count_job){.work = {.run = count_up, .client = 7, .bytes = 1}, .count = &count};
        if (i < QUARTER)
            assert_int_equal(worker_submit(pool, &jobs[i].work, &err), ERR_NONE);
    }
    other = jobs[QUARTER];
    other.work.client = 8;
    assert_int_equal(worker_submit(pool, &jobs[QUARTER].work, &err), ERR_BUSY);
    assert_true(err.retry_after_s > 0);
    assert_int_equal(worker_submit(pool, &other.work, &err), ERR_NONE);
    worker_submit_admitted(pool, &jobs[QUARTER + 1].work);
    sem_post(&opened);
    worker_pool_destroy(pool);
    assert_int_equal(count, QUARTER + 2);
}

static void a_full_queue_refuses_the_client_with_the_most(void **state)
{
    (void)state;
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, 4, 1000);
    atomic_int count = 0;
    const struct count_job job = {.work = {.run = count_up, .refuse = note_refused, .client = 7},
                                  .count = &count};
    struct count_job jobs[4] = {job, job, job, job}, others[3] = {job, job, job};
    jobs[3].work.refuse = NULL;
    for (int i = 0; i < 4; i++)
        assert_int_equal(worker_submit(pool, &jobs[i].work, &err), ERR_NONE);
    for (int i = 0; i < 3; i++)
        others[i].work.client = 8;
    assert_int_equal(worker_submit(pool, &others[0].work, &err), ERR_NONE);
    assert_true(jobs[2].is_refused); /* the last one that may be refused */
    assert_int_equal(worker_submit(pool, &others[1].work, &err), ERR_NONE);
    assert_true(jobs[1].is_refused && !jobs[0].is_refused);
    /* Two jobs of each client wait, so none has more than the other. */
    assert_int_equal(worker_submit(pool, &others[2].work, &err), ERR_BUSY);
    sem_post(&opened);
    worker_pool_destroy(pool);
    assert_int_equal(count, 4);
}

/* A job that has run still counts with its bytes: its request keeps the body while it waits for
 * something else, and is submitted again. */
static void counts_bytes_until_they_are_released(void **state)
{
    (void)state;
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, 10, 1000);
    atomic_int count = 0;
    struct count_job job = {.work = {.run = count_up, .client = 7, .bytes = 600}, .count = &count};
    struct count_job next = job;
    assert_int_equal(worker_submit(pool, &job.work, &err), ERR_NONE);
    sem_post(&opened);
    worker_pool_stop(pool);
    assert_int_equal(count, 1);
    assert_int_equal(worker_bytes(pool), 600);
    worker_submit_admitted(pool, &job.work);
    assert_int_equal(worker_bytes(pool), 600);
    assert_int_equal(worker_submit(pool, &next.work, &err), ERR_BUSY);
    worker_release(pool, &next.work); /* of a job that was refused: no effect */
    assert_int_equal(worker_bytes(pool), 600);
    worker_pool_destroy(pool);
}

static void a_client_has_as_many_bytes_as_remain_free(void **state)
{
    (void)state;
    sem_t entered, opened;
    struct gate_job gate;
    struct err err;
    struct worker_pool *pool = held_pool(&gate, &entered, &opened, 100, 1000);
    atomic_int count = 0;
    const struct count_job job = {.work = {.run = count_up, .client = 7, .bytes = 100},
                                  .count = &count};
    struct count_job jobs[6] = {job, job, job, job, job, job};
    struct count_job others[4] = {job, job, job, job}, small = job;
    small.work.bytes = 0;
    for (int i = 0; i < 5; i++)
        assert_int_equal(worker_submit(pool, &jobs[i].work, &err), ERR_NONE);
    assert_int_equal(worker_submit(pool, &jobs[5].work, &err), ERR_BUSY);
    assert_int_equal(worker_submit(pool, &small.work, &err), ERR_NONE);
    for (int i = 0; i < 4; i++) {
        others[i].work.client = 8;
        assert_int_equal(worker_submit(pool, &others[i].work, &err), i < 3 ? ERR_NONE : ERR_BUSY);
    }
    sem_post(&opened);
    worker_pool_stop(pool);
    for (int i = 0; i < 5; i++)
        worker_release(pool, &jobs[i].work);
    assert_int_equal(worker_bytes(pool), 300);
    worker_pool_destroy(pool);
    assert_int_equal(count, 9);
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
        cmocka_unit_test(serves_clients_round_robin),
        cmocka_unit_test(a_client_has_a_quarter_of_the_queue),
        cmocka_unit_test(a_full_queue_refuses_the_client_with_the_most),
        cmocka_unit_test(counts_bytes_until_they_are_released),
        cmocka_unit_test(a_client_has_as_many_bytes_as_remain_free),
        cmocka_unit_test(many_threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

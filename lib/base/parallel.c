#include "lib/base/parallel.h"

#include "lib/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

struct crew {
    void (*do_part)(void *context, size_t i);
    void *context;
    size_t count;
    atomic_size_t next; /* that nobody has begun */
    atomic_int_fast64_t helpers_cpu_ns;
};

/* Of all crews. */
static atomic_size_t busy_helpers;

/* For this thread, so far. */
static _Thread_local int64_t helpers_cpu_ns;

/* The system reads a file for it, which is too much to ask each time. */
size_t parallel_size(void)
{
    static atomic_size_t known;
    size_t size = atomic_load_explicit(&known, memory_order_relaxed);
    if (size)
        return size;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size = processors < 1 ? 1 : processors > PARALLEL_MOST ? PARALLEL_MOST : (size_t)processors;
    atomic_store_explicit(&known, size, memory_order_relaxed);
    return size;
}

int64_t parallel_cpu_ns(void)
{
    return clock_thread_cpu_ns() + helpers_cpu_ns;
}

static void do_share(struct crew *threads)
{
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&threads->next, 1, memory_order_relaxed);
        if (i >= threads->count)
            return;
        threads->do_part(threads->context, i);
    }
}

static void *help(void *argument)
{
    struct crew *threads = argument;
    do_share(threads);
    atomic_fetch_add(&threads->helpers_cpu_ns,
                     clock_thread_cpu_ns()); /* it has done nothing else */
    return NULL;
}

static bool take_place(size_t most)
{
    size_t busy = atomic_load(&busy_helpers);
    while (busy < most) {
        if (atomic_compare_exchange_weak(&busy_helpers, &busy, busy + 1))
            return true;
    }
    return false;
}

static bool start_helper(struct crew *threads, pthread_t *ret_thread)
{
    if (!take_place(parallel_size() - 1))
        return false;
    if (pthread_create(ret_thread, NULL, help, threads) == 0)
        return true;
    atomic_fetch_sub(&busy_helpers, 1); /* the caller does it */
    return false;
}

void parallel_work(size_t count, void (*do_part)(void *context, size_t i), void *context)
{
    struct crew threads = {.do_part = do_part, .context = context, .count = count};
    pthread_t helpers[PARALLEL_MOST];
    size_t helper_count = 0;
    /* Signals are for the main thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (helper_count + 1 < count && start_helper(&threads, &helpers[helper_count]))
        helper_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    do_share(&threads);
    for (size_t i = 0; i < helper_count; i++) {
        pthread_join(helpers[i], NULL);
        atomic_fetch_sub(&busy_helpers, 1);
    }
    helpers_cpu_ns += threads.helpers_cpu_ns;
}

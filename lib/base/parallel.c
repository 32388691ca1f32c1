#include "lib/base/parallel.h"

#include "lib/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

struct parallel_call {
    void (*do_part)(void *context, size_t i);
    void *context;
    size_t count;
    atomic_size_t next; /* the next part that no thread has started */
    atomic_int_fast64_t helpers_cpu_ns;
};

/* Helpers that run now, over all calls of parallel_for in the process. */
static atomic_size_t busy_helpers;

/* CPU time of all helpers that have worked for this thread. */
static _Thread_local int64_t helpers_cpu_ns;

/* sysconf reads a file, which is too expensive per call, so the result is cached. */
size_t parallel_size(void)
{
    static atomic_size_t known;
    size_t size = atomic_load_explicit(&known, memory_order_relaxed);
    if (size)
        return size;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size = processors < 1                      ? 1
           : processors > PARALLEL_MAX_THREADS ? PARALLEL_MAX_THREADS
                                               : (size_t)processors;
    atomic_store_explicit(&known, size, memory_order_relaxed);
    return size;
}

int64_t parallel_cpu_ns(void)
{
    return clock_thread_cpu_ns() + helpers_cpu_ns;
}

static void run_parts(struct parallel_call *call)
{
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&call->next, 1, memory_order_relaxed);
        if (i >= call->count)
            return;
        call->do_part(call->context, i);
    }
}

static void *run_helper(void *argument)
{
    struct parallel_call *call = argument;
    run_parts(call);
    atomic_fetch_add(&call->helpers_cpu_ns,
                     clock_thread_cpu_ns()); /* the helper has done nothing else */
    return NULL;
}

static bool reserve_helper(size_t most)
{
    size_t busy = atomic_load(&busy_helpers);
    while (busy < most) {
        if (atomic_compare_exchange_weak(&busy_helpers, &busy, busy + 1))
            return true;
    }
    return false;
}

static bool start_helper(struct parallel_call *call, pthread_t *ret_thread)
{
    if (!reserve_helper(parallel_size() - 1))
        return false;
    if (pthread_create(ret_thread, NULL, run_helper, call) == 0)
        return true;
    atomic_fetch_sub(&busy_helpers, 1); /* the caller runs the part */
    return false;
}

void parallel_for(size_t count, void (*do_part)(void *context, size_t i), void *context)
{
    struct parallel_call call = {.do_part = do_part, .context = context, .count = count};
    pthread_t helpers[PARALLEL_MAX_THREADS];
    size_t helper_count = 0;
    /* Only the main thread handles signals. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (helper_count + 1 < count && start_helper(&call, &helpers[helper_count]))
        helper_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    run_parts(&call);
    for (size_t i = 0; i < helper_count; i++) {
        pthread_join(helpers[i], NULL);
        atomic_fetch_sub(&busy_helpers, 1);
    }
    helpers_cpu_ns += call.helpers_cpu_ns;
}

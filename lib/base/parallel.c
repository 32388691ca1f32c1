#include "lib/base/parallel.h"

#include "lib/base/clock.h"
#include "lib/base/thread_signals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* A call of parallel_for that is running; it is on its caller's stack. */
struct parallel_call {
    void (*do_part)(void *context, size_t i);
    void *context;
    size_t count;
    atomic_size_t next; /* the next part that no thread has started */
    /* Protected by pool.mutex: */
    struct parallel_call *following; /* in pool.calls */
    size_t helper_count;             /* helpers that work for it now */
    int64_t helpers_cpu_ns;
    pthread_cond_t is_left; /* helper_count became 0 */
};

/*
 * The helper threads of the process. They are created with the first call that has several parts
 * and live as long as the process. Each waits until a call is listed, works for it until no part is
 * left, and takes the next call. A call that a helper takes moves to the end of the list, so that
 * concurrent calls get helpers round robin.
 *
 * The caller works as well, so a call never waits for a helper to become free. At its end it takes
 * the call off the list, so that no helper begins with it any more, and waits for those that are
 * still in a part.
 */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t has_call;
    struct parallel_call *calls;
    size_t thread_count;
    bool is_complete; /* no more threads are created: all run, or the system has refused one */
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .has_call = PTHREAD_COND_INITIALIZER};

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

static void list_call(struct parallel_call *call)
{
    struct parallel_call **end = &pool.calls;
    while (*end)
        end = &(*end)->following;
    call->following = NULL;
    *end = call;
}

/* No-op if a helper has found the call without a part left and removed it. */
static void unlist_call(const struct parallel_call *call)
{
    for (struct parallel_call **at = &pool.calls; *at; at = &(*at)->following) {
        if (*at == call) {
            *at = call->following;
            return;
        }
    }
}

static bool has_part(struct parallel_call *call)
{
    return atomic_load_explicit(&call->next, memory_order_relaxed) < call->count;
}

/* Takes the first call off the list, and puts it at the end if it has parts. */
static struct parallel_call *take_call(void)
{
    struct parallel_call *call = pool.calls;
    pool.calls = call->following;
    if (!has_part(call))
        return NULL;
    list_call(call);
    return call;
}

static void help(struct parallel_call *call)
{
    call->helper_count++;
    pthread_mutex_unlock(&pool.mutex);
    const int64_t before_ns = clock_thread_cpu_ns();
    run_parts(call);
    const int64_t used_ns = clock_thread_cpu_ns() - before_ns;
    pthread_mutex_lock(&pool.mutex);
    call->helpers_cpu_ns += used_ns;
    if (--call->helper_count == 0)
        pthread_cond_signal(&call->is_left);
}

static void *run_helper(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&pool.mutex);
    for (;;) {
        while (!pool.calls)
            pthread_cond_wait(&pool.has_call, &pool.mutex);
        struct parallel_call *call = take_call();
        if (call)
            help(call);
    }
    return NULL;
}

/* One thread less than there are processors: the caller is the last. */
static void create_helpers(void)
{
    sigset_t before;
    pthread_t thread;
    if (pool.is_complete)
        return;
    pool.is_complete = true;
    thread_signals_block(&before);
    while (pool.thread_count + 1 < parallel_size() &&
           pthread_create(&thread, NULL, run_helper, NULL) == 0) {
        pthread_detach(thread);
        pool.thread_count++;
    }
    thread_signals_restore(&before);
}

/* Lists the call and wakes a helper for each part but the caller's, as far as there are helpers. */
static void offer_call(struct parallel_call *call)
{
    pthread_mutex_lock(&pool.mutex);
    create_helpers();
    list_call(call);
    for (size_t i = 0; i < pool.thread_count && i + 1 < call->count; i++)
        pthread_cond_signal(&pool.has_call);
    pthread_mutex_unlock(&pool.mutex);
}

static void end_call(struct parallel_call *call)
{
    pthread_mutex_lock(&pool.mutex);
    unlist_call(call);
    while (call->helper_count)
        pthread_cond_wait(&call->is_left, &pool.mutex);
    helpers_cpu_ns += call->helpers_cpu_ns;
    pthread_mutex_unlock(&pool.mutex);
    pthread_cond_destroy(&call->is_left);
}

void parallel_for(size_t count, void (*do_part)(void *context, size_t i), void *context)
{
    struct parallel_call call = {.do_part = do_part,
                                 .context = context,
                                 .count = count,
                                 .is_left = PTHREAD_COND_INITIALIZER};
    const bool has_helpers = count > 1 && parallel_size() > 1;
    if (has_helpers)
        offer_call(&call);
    run_parts(&call);
    if (has_helpers)
        end_call(&call);
}

#include "lib/base/breaker.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
    PROBE_AGAIN_MS = 250,   /* while open: how soon a service that is back is noticed */
    SUSPECT_AGAIN_MS = 400, /* while closed: a statement that waits for a lock is suspected often */
};

struct breaker {
    struct breaker_options options;
    pthread_t thread;
    atomic_bool is_open;
    atomic_bool is_suspected; /* may be read without the mutex, so that waiting callers are cheap */
    _Atomic uint64_t open_count;
    _Atomic int64_t replied_ns; /* monotonic: when a caller last received something */
    pthread_mutex_t mutex;      /* guards what follows */
    pthread_cond_t wake;
    bool should_stop;
};

static void wait_ms(struct breaker *breaker, int64_t duration_ms)
{
    const int64_t until_ns = clock_monotonic_ns() + duration_ms * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = until_ns / CLOCK_NS_PER_S,
                                   .tv_nsec = until_ns % CLOCK_NS_PER_S};
    while (!breaker->should_stop)
        if (pthread_cond_timedwait(&breaker->wake, &breaker->mutex, &until) != 0)
            return;
}

/* Waits until a probe is due; false when the thread has to end. */
static bool wait_until_due(struct breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    wait_ms(breaker, atomic_load(&breaker->is_open) ? PROBE_AGAIN_MS : SUSPECT_AGAIN_MS);
    while (!breaker->should_stop && !atomic_load(&breaker->is_open) &&
           !atomic_load(&breaker->is_suspected))
        pthread_cond_wait(&breaker->wake, &breaker->mutex);
    const bool goes_on = !breaker->should_stop;
    pthread_mutex_unlock(&breaker->mutex);
    return goes_on;
}

struct probe_request {
    const struct breaker_options *options;
    int index;
    bool has_reply;
};

static void *send_request(void *context)
{
    struct probe_request *request = context;
    request->has_reply = request->options->probe(request->options->context, request->index);
    return NULL;
}

/* A request for which no thread can be started is sent after the others. */
static bool send_requests(const struct breaker_options *options)
{
    struct probe_request requests[BREAKER_PROBE_REQUESTS];
    pthread_t threads[BREAKER_PROBE_REQUESTS];
    bool has_thread[BREAKER_PROBE_REQUESTS] = {false};
    bool has_reply = false;
    for (int i = 0; i < BREAKER_PROBE_REQUESTS; i++)
        requests[i] = (struct probe_request){.options = options, .index = i};
    for (int i = 1; i < BREAKER_PROBE_REQUESTS; i++)
        has_thread[i] = pthread_create(&threads[i], NULL, send_request, &requests[i]) == 0;
    for (int i = 0; i < BREAKER_PROBE_REQUESTS; i++) {
        if (has_thread[i])
            pthread_join(threads[i], NULL);
        else
            send_request(&requests[i]);
        has_reply |= requests[i].has_reply;
    }
    return has_reply;
}

static void probe_once(struct breaker *breaker)
{
    const struct breaker_options *options = &breaker->options;
    const int64_t begin_ns = clock_monotonic_ns();
    /* Before the probe: who begins to wait while it runs may suspect again. */
    atomic_store(&breaker->is_suspected, false);
    const bool has_reply = send_requests(options);
    const bool is_open =
        !has_reply && atomic_load_explicit(&breaker->replied_ns, memory_order_relaxed) < begin_ns;
    const bool was_open = atomic_exchange(&breaker->is_open, is_open);
    if (is_open && !was_open)
        atomic_fetch_add(&breaker->open_count, 1);
    if (is_open != was_open && options->report)
        options->report(options->context, is_open);
}

static void *breaker_main(void *context)
{
    struct breaker *breaker = context;
    if (breaker->options.probes_at_start)
        probe_once(breaker);
    while (wait_until_due(breaker))
        probe_once(breaker);
    return NULL;
}

enum err_code breaker_create(const struct breaker_options *options, struct breaker **ret_breaker,
                             struct err *err)
{
    struct breaker *breaker = mem_new(struct breaker, 1);
    pthread_condattr_t attributes;
    breaker->options = *options;
    pthread_mutex_init(&breaker->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&breaker->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&breaker->thread, NULL, breaker_main, breaker) != 0) {
        mem_free(breaker);
        return err_set(err, ERR_INTERNAL, "cannot start the thread of a circuit breaker");
    }
    *ret_breaker = breaker;
    return ERR_NONE;
}

void breaker_destroy(struct breaker *breaker)
{
    if (!breaker)
        return;
    pthread_mutex_lock(&breaker->mutex);
    breaker->should_stop = true;
    pthread_cond_signal(&breaker->wake);
    pthread_mutex_unlock(&breaker->mutex);
    pthread_join(breaker->thread, NULL);
    pthread_cond_destroy(&breaker->wake);
    pthread_mutex_destroy(&breaker->mutex);
    mem_free(breaker);
}

bool breaker_is_open(const struct breaker *breaker)
{
    return breaker && atomic_load(&breaker->is_open);
}

void breaker_suspect(struct breaker *breaker)
{
    if (!breaker || atomic_exchange(&breaker->is_suspected, true))
        return;
    pthread_mutex_lock(&breaker->mutex);
    pthread_cond_signal(&breaker->wake);
    pthread_mutex_unlock(&breaker->mutex);
}

void breaker_note_reply(struct breaker *breaker)
{
    if (breaker)
        atomic_store_explicit(&breaker->replied_ns, clock_monotonic_ns(), memory_order_relaxed);
}

uint64_t breaker_open_count(const struct breaker *breaker)
{
    return breaker ? atomic_load(&breaker->open_count) : 0;
}

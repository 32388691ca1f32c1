#include "lib/base/breaker.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum {
    PROBE_AGAIN_MS = 250,   /* while open: how soon a recovery is detected */
    SUSPECT_AGAIN_MS = 400, /* while closed: waits for locks cause many suspicions */
    DEADLINE_FACTOR = 3,    /* a probe waits this many times the slowest recent reply */
    DECAY_DIVISOR = 8,
};

/* The request with the longest deadline. Only the thread of the breaker starts and joins its
 * thread. */
struct long_request {
    pthread_t thread;
    bool is_started;
    atomic_bool has_ended;
    _Atomic int64_t replied_ns; /* monotonic */
};

struct breaker {
    struct breaker_options options;
    pthread_t thread;
    atomic_bool is_open;
    atomic_bool is_suspected; /* atomic, so that waiting callers can read it without the mutex */
    _Atomic uint64_t open_count;
    _Atomic int64_t replied_ns; /* monotonic: when a caller last received something */
    /* The duration of the slowest recent probe. Concurrent updates may overwrite each other; an
     * estimate is enough. */
    _Atomic int64_t slowest_ns;
    int64_t judged_ns; /* when the last probe ended; used by the breaker's thread only */
    struct long_request long_request;
    pthread_mutex_t mutex; /* guards the members below */
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

/* ---- the estimate of how slow the service is ---- */

static void lower_estimate(struct breaker *breaker, int64_t duration_ns)
{
    const int64_t slowest_ns = atomic_load_explicit(&breaker->slowest_ns, memory_order_relaxed);
    const int64_t lowered_ns = slowest_ns - slowest_ns / DECAY_DIVISOR;
    if (duration_ns < slowest_ns)
        atomic_store_explicit(&breaker->slowest_ns,
                              duration_ns > lowered_ns ? duration_ns : lowered_ns,
                              memory_order_relaxed);
}

static void learn_duration(struct breaker *breaker, int64_t duration_ns)
{
    if (duration_ns > atomic_load_explicit(&breaker->slowest_ns, memory_order_relaxed))
        atomic_store_explicit(&breaker->slowest_ns, duration_ns, memory_order_relaxed);
    else
        lower_estimate(breaker, duration_ns);
}

int64_t breaker_deadline_ms(const struct breaker *breaker)
{
    if (!breaker)
        return 0;
    const struct breaker_options *options = &breaker->options;
    const int64_t wanted_ms = atomic_load_explicit(&breaker->slowest_ns, memory_order_relaxed) *
                              DEADLINE_FACTOR / CLOCK_NS_PER_MS;
    return wanted_ms < options->probe_ms       ? options->probe_ms
           : wanted_ms > options->max_probe_ms ? options->max_probe_ms
                                               : wanted_ms;
}

/* ---- probes ---- */

struct probe_request {
    const struct breaker_options *options;
    int index;
    int64_t deadline_ms;
    int64_t duration_ns;
    bool has_reply;
};

static void *send_request(void *context)
{
    struct probe_request *request = context;
    const int64_t begin_ns = clock_monotonic_ns();
    request->has_reply =
        request->options->probe(request->options->context, request->index, request->deadline_ms);
    request->duration_ns = clock_monotonic_ns() - begin_ns;
    return NULL;
}

/* Records the duration of the fastest reply: one reply proves that the service works. */
static bool learn_from_requests(struct breaker *breaker, const struct probe_request *requests,
                                int count)
{
    int64_t quickest_ns = INT64_MAX;
    for (int i = 0; i < count; i++)
        if (requests[i].has_reply && requests[i].duration_ns < quickest_ns)
            quickest_ns = requests[i].duration_ns;
    if (quickest_ns == INT64_MAX)
        return false;
    learn_duration(breaker, quickest_ns);
    return true;
}

/* A request for which no thread can be created is sent after the others, on this thread. */
static bool send_requests(struct breaker *breaker, int64_t deadline_ms)
{
    const struct breaker_options *options = &breaker->options;
    struct probe_request requests[BREAKER_PROBE_REQUESTS];
    pthread_t threads[BREAKER_PROBE_REQUESTS];
    bool has_thread[BREAKER_PROBE_REQUESTS] = {false};
    for (int i = 0; i < BREAKER_PROBE_REQUESTS; i++)
        requests[i] =
            (struct probe_request){.options = options, .index = i, .deadline_ms = deadline_ms};
    for (int i = 1; i < BREAKER_PROBE_REQUESTS; i++)
        has_thread[i] = pthread_create(&threads[i], NULL, send_request, &requests[i]) == 0;
    for (int i = 0; i < BREAKER_PROBE_REQUESTS; i++) {
        if (has_thread[i])
            pthread_join(threads[i], NULL);
        else
            send_request(&requests[i]);
    }
    return learn_from_requests(breaker, requests, BREAKER_PROBE_REQUESTS);
}

static void *send_long_request(void *context)
{
    struct breaker *breaker = context;
    struct probe_request request = {.options = &breaker->options,
                                    .index = BREAKER_LONG_REQUEST,
                                    .deadline_ms = breaker->options.max_probe_ms};
    send_request(&request);
    if (learn_from_requests(breaker, &request, 1))
        atomic_store(&breaker->long_request.replied_ns, clock_monotonic_ns());
    atomic_store(&breaker->long_request.has_ended, true);
    return NULL;
}

static void join_long_request(struct long_request *request)
{
    if (request->is_started)
        pthread_join(request->thread, NULL);
    request->is_started = false;
}

/* Starts the request with the longest deadline unless it is running. If no thread can be created,
 * the next probe tries again. */
static void start_long_request(struct breaker *breaker)
{
    struct long_request *request = &breaker->long_request;
    const bool is_running = request->is_started && !atomic_load(&request->has_ended);
    if (is_running || breaker->options.max_probe_ms <= breaker->options.probe_ms)
        return;
    join_long_request(request);
    atomic_store(&request->has_ended, false);
    request->is_started = pthread_create(&request->thread, NULL, send_long_request, breaker) == 0;
}

/*
 * Whether anything but this probe got a reply since begin_ns. A reply to a caller counts only when
 * it came during the probe: callers that gave up after the breaker opened may still report bytes
 * that they received before. The reply to the request with the longest deadline may also have come
 * between two probes.
 */
static bool has_other_reply(const struct breaker *breaker, int64_t begin_ns)
{
    return atomic_load_explicit(&breaker->replied_ns, memory_order_relaxed) >= begin_ns ||
           atomic_load(&breaker->long_request.replied_ns) > breaker->judged_ns;
}

static void probe_once(struct breaker *breaker)
{
    const struct breaker_options *options = &breaker->options;
    const int64_t begin_ns = clock_monotonic_ns();
    /* Cleared before the probe, so that a caller that starts to wait during the probe can
     * suspect again. */
    atomic_store(&breaker->is_suspected, false);
    const int64_t deadline_ms =
        atomic_load(&breaker->is_open) ? options->probe_ms : breaker_deadline_ms(breaker);
    const bool has_reply = send_requests(breaker, deadline_ms);
    const bool is_alive = has_other_reply(breaker, begin_ns);
    const bool is_open = !has_reply && !is_alive;
    const bool was_open = atomic_exchange(&breaker->is_open, is_open);
    if (!has_reply && !is_open && !was_open)
        learn_duration(breaker, deadline_ms * CLOCK_NS_PER_MS);
    breaker->judged_ns = clock_monotonic_ns();
    if (is_open)
        start_long_request(breaker);
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
    join_long_request(&breaker->long_request);
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

void breaker_note_duration(struct breaker *breaker, int64_t duration_ns)
{
    if (breaker)
        lower_estimate(breaker, duration_ns);
}

uint64_t breaker_open_count(const struct breaker *breaker)
{
    return breaker ? atomic_load(&breaker->open_count) : 0;
}

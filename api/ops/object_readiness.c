#include "api/ops/object_readiness.h"

#include "api/core/object_store_setup.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/thread_signals.h"
#include "lib/io/object.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct object_readiness {
    struct object_store *objects;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t wanted;
    pthread_cond_t checked;
    bool is_wanted;
    bool should_stop;
    uint64_t check_count;
    int64_t checked_ns; /* monotonic: the end of the last check */
    const char *problem;
};

static const char *find_problem(struct object_store *objects)
{
    char quoted[ERR_MESSAGE_BYTES * 2];
    struct err err;
    if (!object_store_check(objects, OBJECT_STORE_SETUP_IDENTITY_KEY, &err))
        return NULL;
    log_event(LOG_WARN, "not ready", "code=%s err=%s", err_code_name(err.code),
              log_quote(err.message, quoted, sizeof(quoted)));
    return err.public_text ? err.public_text : "the object store cannot be used";
}

static void *check_until_stopped(void *context)
{
    struct object_readiness *readiness = context;
    pthread_mutex_lock(&readiness->mutex);
    while (!readiness->should_stop) {
        if (!readiness->is_wanted) {
            pthread_cond_wait(&readiness->wanted, &readiness->mutex);
            continue;
        }
        pthread_mutex_unlock(&readiness->mutex);
        const char *problem = find_problem(readiness->objects);
        pthread_mutex_lock(&readiness->mutex);
        readiness->problem = problem;
        readiness->checked_ns = clock_monotonic_ns();
        readiness->check_count++;
        readiness->is_wanted = false;
        pthread_cond_broadcast(&readiness->checked);
    }
    pthread_mutex_unlock(&readiness->mutex);
    return NULL;
}

enum err_code object_readiness_create(struct object_store *objects,
                                      struct object_readiness **ret_readiness, struct err *err)
{
    struct object_readiness *readiness = mem_new(struct object_readiness, 1);
    pthread_condattr_t attributes;
    readiness->objects = objects;
    readiness->problem = "the object store has not replied yet";
    pthread_mutex_init(&readiness->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&readiness->wanted, &attributes);
    pthread_cond_init(&readiness->checked, &attributes);
    pthread_condattr_destroy(&attributes);
    /* Only the main thread handles signals. */
    sigset_t before;
    thread_signals_block(&before);
    const int failure = pthread_create(&readiness->thread, NULL, check_until_stopped, readiness);
    thread_signals_restore(&before);
    if (failure) {
        mem_free(readiness);
        return err_set(err, ERR_INTERNAL, "cannot start the thread that checks the object store");
    }
    *ret_readiness = readiness;
    return ERR_NONE;
}

void object_readiness_destroy(struct object_readiness *readiness)
{
    if (!readiness)
        return;
    pthread_mutex_lock(&readiness->mutex);
    readiness->should_stop = true;
    pthread_cond_signal(&readiness->wanted);
    pthread_mutex_unlock(&readiness->mutex);
    pthread_join(readiness->thread, NULL);
    pthread_cond_destroy(&readiness->wanted);
    pthread_cond_destroy(&readiness->checked);
    pthread_mutex_destroy(&readiness->mutex);
    mem_free(readiness);
}

/* Called with the lock held. */
static void wait_for_check(struct object_readiness *readiness)
{
    const uint64_t count_before = readiness->check_count;
    const int64_t until_ns = clock_monotonic_ns() + OBJECT_READINESS_WAIT_MS * CLOCK_NS_PER_MS;
    const struct timespec until = {.tv_sec = until_ns / CLOCK_NS_PER_S,
                                   .tv_nsec = until_ns % CLOCK_NS_PER_S};
    readiness->is_wanted = true;
    pthread_cond_signal(&readiness->wanted);
    while (readiness->check_count == count_before) {
        if (pthread_cond_timedwait(&readiness->checked, &readiness->mutex, &until))
            return;
    }
}

const char *object_readiness_problem(struct object_readiness *readiness)
{
    pthread_mutex_lock(&readiness->mutex);
    if (!readiness->check_count ||
        clock_monotonic_ns() - readiness->checked_ns > OBJECT_READINESS_S * CLOCK_NS_PER_S)
        wait_for_check(readiness);
    const char *problem = readiness->problem;
    pthread_mutex_unlock(&readiness->mutex);
    return problem;
}

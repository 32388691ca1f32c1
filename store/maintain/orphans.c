#include "store/maintain/orphans.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/object.h"
#include "store/catalogue/catalogue.h"
#include "store/maintain/maintenance_options.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum {
    FIRST_S = 2,   /* after the start */
    EVERY_S = 10,  /* between time slices */
    RETRY_S = 150, /* after a time slice that failed */
    SLICE_S = 5,   /* no search of a writer begins later in the time slice */
    KEYS_AT_ONCE = 1000,
    PREFIX_MAX_BYTES = 48
};

struct orphans {
    struct maintenance_options options;
    pthread_t thread;
    int64_t last_writer_id; /* the search continues after it, so a failure delays no other writer */
    pthread_mutex_t mutex;  /* guards should_stop */
    pthread_cond_t wake;
    bool should_stop;
};

static bool should_stop(struct orphans *orphans)
{
    pthread_mutex_lock(&orphans->mutex);
    const bool stops = orphans->should_stop;
    pthread_mutex_unlock(&orphans->mutex);
    return stops;
}

/* ---- one writer ---- */

/*
 * The following rules ensure that no live object is discarded and no orphan is left.
 *
 * A flush or swap renews its writer's row in the transaction that inserts the rows, and fails if
 * the writer has ended. The end of the writer waits for the lock of that row. So when a search sees
 * a writer as ended, each row that can ever name one of its objects is visible, and each object
 * without a row stays without one.
 *
 *   A listing fails, or the server dies in it   the search is not recorded, so it is repeated.
 *   The server dies after keys were discarded   they are in object_trash; the next search skips
 *                                               them (ON CONFLICT DO NOTHING).
 *   The connection breaks, and with it the      another server may search the same writer: both
 *   lock                                        discard the same keys.
 *   A put stores its object after the search    a later search finds it. A search is recorded with
 *                                               the start of its slice, so the last search began at
 *                                               least a day after the end of the writer.
 */
struct found_keys {
    struct orphans *orphans;
    struct catalogue_search *search;
    struct arena *arena; /* contains the keys; emptied when they are discarded */
    const char *keys[KEYS_AT_ONCE];
    uint32_t count;
};

static enum err_code discard_keys(struct found_keys *found, struct err *err)
{
    const enum err_code code =
        catalogue_search_discard(found->search, found->arena, found->keys, found->count, err);
    arena_destroy(found->arena);
    found->arena = arena_create();
    found->count = 0;
    return code;
}

static enum err_code collect_key(void *context, const char *key, uint64_t size, int64_t modified_ns,
                                 struct err *err)
{
    (void)size;
    (void)modified_ns;
    struct found_keys *found = context;
    if (should_stop(found->orphans))
        return err_set(err, ERR_CANCELLED, "the server stops");
    found->keys[found->count++] = arena_strdup(found->arena, key);
    return found->count == KEYS_AT_ONCE ? discard_keys(found, err) : ERR_NONE;
}

static enum err_code search_kind(struct found_keys *found, const char *kind, int64_t writer_id,
                                 struct err *err)
{
    char prefix[PREFIX_MAX_BYTES];
    if (should_stop(found->orphans))
        return err_set(err, ERR_CANCELLED, "the server stops");
    snprintf(prefix, sizeof(prefix), "%s/%" PRId64 "/", kind, writer_id);
    return object_list(found->orphans->options.objects, prefix, collect_key, found, err);
}

static enum err_code search_writer(struct orphans *orphans, struct catalogue_search *search,
                                   int64_t writer_id, struct err *err)
{
    struct found_keys found = {.orphans = orphans, .search = search, .arena = arena_create()};
    enum err_code code = search_kind(&found, "segment", writer_id, err);
    if (!code)
        code = search_kind(&found, "block", writer_id, err);
    if (!code)
        code = discard_keys(&found, err);
    if (!code)
        code = catalogue_note_search(search, found.arena, writer_id, err);
    arena_destroy(found.arena);
    return code;
}

/* ---- time slices ---- */

static enum err_code search_due(struct orphans *orphans, struct catalogue_search *search,
                                struct err *err)
{
    const int64_t end_ns = clock_monotonic_ns() + SLICE_S * CLOCK_NS_PER_S;
    enum err_code code = ERR_NONE;
    for (uint32_t i = 0; i < search->count && !code && clock_monotonic_ns() < end_ns; i++) {
        orphans->last_writer_id = search->writer_ids[i];
        code = search_writer(orphans, search, search->writer_ids[i], err);
    }
    return code;
}

static enum err_code search_slice(struct orphans *orphans, struct err *err)
{
    arena_auto arena = arena_create();
    struct catalogue_search search;
    struct err end_err;
    enum err_code code = catalogue_begin_search(orphans->options.jobs_database, arena,
                                                orphans->last_writer_id, &search, err);
    if (!code)
        code = search_due(orphans, &search, err);
    const enum err_code end_code = catalogue_end_search(&search, arena, &end_err);
    if (code || !end_code)
        return code;
    *err = end_err;
    return end_code;
}

/* ---- the thread ---- */

/* False when the thread has to end. */
static bool wait_for_slice(struct orphans *orphans, int64_t wait_s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_s;
    pthread_mutex_lock(&orphans->mutex);
    while (!orphans->should_stop)
        if (pthread_cond_timedwait(&orphans->wake, &orphans->mutex, &until) != 0)
            break;
    const bool goes_on = !orphans->should_stop;
    pthread_mutex_unlock(&orphans->mutex);
    return goes_on;
}

static void *orphans_main(void *context)
{
    struct orphans *orphans = context;
    const struct maintenance_options *options = &orphans->options;
    for (int64_t wait_s = FIRST_S; wait_for_slice(orphans, wait_s);) {
        struct err err;
        const enum err_code code = search_slice(orphans, &err);
        if (code && code != ERR_CANCELLED && options->report)
            options->report(options->report_context, "orphans", &err);
        wait_s = code ? RETRY_S : EVERY_S;
    }
    return NULL;
}

enum err_code orphans_create(const struct maintenance_options *options,
                             struct orphans **ret_orphans, struct err *err)
{
    struct orphans *orphans = mem_new(struct orphans, 1);
    pthread_condattr_t attributes;
    orphans->options = *options;
    pthread_mutex_init(&orphans->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&orphans->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&orphans->thread, NULL, orphans_main, orphans) != 0) {
        mem_free(orphans);
        return err_set(err, ERR_INTERNAL, "cannot start the thread that searches for orphans");
    }
    *ret_orphans = orphans;
    return ERR_NONE;
}

void orphans_destroy(struct orphans *orphans)
{
    if (!orphans)
        return;
    pthread_mutex_lock(&orphans->mutex);
    orphans->should_stop = true;
    pthread_cond_signal(&orphans->wake);
    pthread_mutex_unlock(&orphans->mutex);
    pthread_join(orphans->thread, NULL);
    pthread_cond_destroy(&orphans->wake);
    pthread_mutex_destroy(&orphans->mutex);
    mem_free(orphans);
}

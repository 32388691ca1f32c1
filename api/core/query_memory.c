/*
 * The store calls grow when a query needs more bytes than it was granted. grow never waits: it
 * returns the bytes that the query may use, possibly fewer than requested. Then the store frees
 * everything that the query has read and calls wait, which returns the slot's bytes, queues the
 * slot, and returns when twice the needed bytes are free at once; the query starts again. A waiting
 * query holds nothing, so queries cannot deadlock, and since it gets twice as much as before, it
 * seldom has to wait a second time.
 *
 * Fairness: find_next prefers the tenant that holds least. While a query of that tenant waits, the
 * queries of tenants that hold more do not grow (must_give_way), so a tenant with many queries
 * cannot delay a tenant with one for longer than its running queries take.
 */
#include "api/core/query_memory.h"

#include "api/core/memory_info.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)
#define TRIMMED_BYTES (128 * MIB) /* a smaller request is not worth the milliseconds */

enum {
    STEP_BYTES = 4 << 20, /* a slot grows by at least this much */
    LOOK_MS = 500         /* how often a waiting query checks whether its client has left */
};

struct query_memory_slot {
    struct query_memory *memory;
    struct query_memory_slot *beside; /* the previous slot of the same request */
    struct query_memory_slot *next;   /* in one of the lists of struct query_memory */
    int64_t tenant_id;
    uint64_t held_bytes;   /* if > 0, the slot is in memory->held */
    uint64_t needed_bytes; /* at least this much of them is needed: a query that waited holds more
                              in advance */
    struct wait_limit wait_limit;
    struct store_memory calls; /* the functions that the store calls */
};

struct query_memory {
    pthread_mutex_t mutex; /* guards the members below, and all slots */
    pthread_cond_t has_changed;
    uint64_t max_bytes;
    uint64_t used_bytes;
    struct query_memory_slot *held;    /* few: each has a worker thread */
    struct query_memory_slot *waiting; /* in order of arrival */
};

struct query_memory *query_memory_create(uint64_t max_bytes)
{
    struct query_memory *memory = mem_new(struct query_memory, 1);
    memory->max_bytes = max_bytes ? max_bytes : memory_info_limit_bytes(MEMORY_QUERIES);
    pthread_mutex_init(&memory->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&memory->has_changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return memory;
}

void query_memory_destroy(struct query_memory *memory)
{
    if (!memory)
        return;
    assert(!memory->held && !memory->waiting);
    pthread_cond_destroy(&memory->has_changed);
    pthread_mutex_destroy(&memory->mutex);
    mem_free(memory);
}

uint64_t query_memory_max_bytes(const struct query_memory *memory)
{
    return memory->max_bytes;
}

uint64_t query_memory_used_bytes(struct query_memory *memory)
{
    pthread_mutex_lock(&memory->mutex);
    const uint64_t bytes = memory->used_bytes;
    pthread_mutex_unlock(&memory->mutex);
    return bytes;
}

int query_memory_waiting_count(struct query_memory *memory)
{
    int count = 0;
    pthread_mutex_lock(&memory->mutex);
    for (const struct query_memory_slot *slot = memory->waiting; slot; slot = slot->next)
        count++;
    pthread_mutex_unlock(&memory->mutex);
    return count;
}

/* ---- called locked ---- */

static void unlink_slot(struct query_memory_slot **list, const struct query_memory_slot *slot)
{
    while (*list != slot)
        list = &(*list)->next;
    *list = slot->next;
}

static void set_held(struct query_memory_slot *slot, uint64_t bytes)
{
    struct query_memory *memory = slot->memory;
    memory->used_bytes += bytes - slot->held_bytes;
    if (bytes && !slot->held_bytes) {
        slot->next = memory->held;
        memory->held = slot;
    } else if (!bytes && slot->held_bytes) {
        unlink_slot(&memory->held, slot);
    }
    slot->held_bytes = bytes;
    pthread_cond_broadcast(&memory->has_changed);
}

static uint64_t held_by(const struct query_memory *memory, int64_t tenant_id)
{
    uint64_t bytes = 0;
    for (const struct query_memory_slot *slot = memory->held; slot; slot = slot->next)
        bytes += slot->tenant_id == tenant_id ? slot->held_bytes : 0;
    return bytes;
}

/* The next to be admitted: of the tenant that holds least, the one that waits for longest. NULL if
 * none waits. */
static const struct query_memory_slot *find_next(const struct query_memory *memory)
{
    const struct query_memory_slot *next = NULL;
    uint64_t least = UINT64_MAX;
    for (const struct query_memory_slot *slot = memory->waiting; slot; slot = slot->next) {
        const uint64_t bytes = held_by(memory, slot->tenant_id);
        next = bytes < least ? slot : next;
        least = bytes < least ? bytes : least;
    }
    return next;
}

static bool is_free(const struct query_memory_slot *slot, uint64_t bytes)
{
    const struct query_memory *memory = slot->memory;
    return bytes <= memory->max_bytes - (memory->used_bytes - slot->held_bytes);
}

static bool must_give_way(const struct query_memory_slot *slot)
{
    const struct query_memory *memory = slot->memory;
    const struct query_memory_slot *next = find_next(memory);
    return next && next->tenant_id != slot->tenant_id &&
           held_by(memory, next->tenant_id) < held_by(memory, slot->tenant_id);
}

static bool wait_for_memory(struct query_memory_slot *slot, uint64_t bytes)
{
    struct query_memory *memory = slot->memory;
    struct query_memory_slot **last = &memory->waiting;
    while (*last)
        last = &(*last)->next;
    *last = slot;
    slot->next = NULL;
    const int64_t end_ns = clock_monotonic_ns() + QUERY_MEMORY_WAIT_S * CLOCK_NS_PER_S;
    bool is_in = false, is_over = false;
    while (!is_over && !is_in) {
        is_in = find_next(memory) == slot && is_free(slot, bytes);
        const int64_t now_ns = clock_monotonic_ns();
        const int64_t left_ms = wait_limit_left_ms(&slot->wait_limit, LOOK_MS);
        is_over = now_ns >= end_ns || !left_ms;
        const int64_t until_ns = now_ns + left_ms * CLOCK_NS_PER_MS;
        const struct timespec until = {until_ns / CLOCK_NS_PER_S, until_ns % CLOCK_NS_PER_S};
        if (!is_in && !is_over)
            pthread_cond_timedwait(&memory->has_changed, &memory->mutex, &until);
    }
    unlink_slot(&memory->waiting, slot);
    pthread_cond_broadcast(&memory->has_changed); /* the next one may fit now */
    return is_in;
}

/* The bytes needed by other results of the same request, which are still in use. */
static uint64_t needed_beside(const struct query_memory_slot *slot)
{
    uint64_t bytes = 0;
    for (const struct query_memory_slot *other = slot->beside; other; other = other->beside)
        bytes += other->held_bytes ? other->needed_bytes : 0;
    return bytes;
}

/* A query of a request that still uses other results does not wait: it takes the bytes that are
 * free, or none. */
static bool take_what_is_free(const struct query_memory_slot *slot, size_t needed, uint64_t *wanted)
{
    const struct query_memory *memory = slot->memory;
    const uint64_t free_bytes = memory->max_bytes - memory->used_bytes;
    if (needed > free_bytes || must_give_way(slot))
        return false;
    *wanted = *wanted < free_bytes ? *wanted : free_bytes;
    return true;
}

/* ---- called by the store ---- */

static size_t grow_slot(void *context, size_t bytes)
{
    struct query_memory_slot *slot = context;
    struct query_memory *memory = slot->memory;
    if (bytes <= QUERY_MEMORY_LIGHT)
        return QUERY_MEMORY_LIGHT;
    uint64_t wanted = ((uint64_t)bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    pthread_mutex_lock(&memory->mutex);
    wanted = wanted < memory->max_bytes ? wanted : memory->max_bytes;
    if (wanted > slot->held_bytes && is_free(slot, wanted) && !must_give_way(slot)) {
        set_held(slot, wanted);
        slot->needed_bytes = bytes < wanted ? bytes : wanted;
    }
    const uint64_t held_bytes = slot->held_bytes;
    pthread_mutex_unlock(&memory->mutex);
    return (size_t)held_bytes;
}

static enum err_code refuse_too_large(const struct query_memory *memory, struct err *err)
{
    return err_set(err, ERR_LIMIT,
                   "this query needs more memory than this server has for queries (%" PRIu64
                   " MiB, --max-query-memory): select fewer series or a shorter time",
                   memory->max_bytes / MIB);
}

static enum err_code wait_for_whole(void *context, size_t needed, size_t most, struct err *err)
{
    struct query_memory_slot *slot = context;
    struct query_memory *memory = slot->memory;
    if (needed > memory->max_bytes)
        return refuse_too_large(memory, err);
    uint64_t wanted = 2 * (uint64_t)needed < most ? 2 * (uint64_t)needed : most;
    wanted = wanted < memory->max_bytes ? wanted : memory->max_bytes;
    pthread_mutex_lock(&memory->mutex);
    set_held(slot, 0);
    const uint64_t beside = needed_beside(slot);
    const bool is_too_much = needed > memory->max_bytes - beside;
    const bool is_in = !is_too_much && (beside ? take_what_is_free(slot, needed, &wanted)
                                               : wait_for_memory(slot, wanted));
    if (is_in) {
        set_held(slot, wanted);
        slot->needed_bytes = needed;
    }
    pthread_mutex_unlock(&memory->mutex);
    if (is_in)
        return ERR_NONE;
    if (is_too_much)
        return refuse_too_large(memory, err);
    if (wait_limit_is_cancelled(&slot->wait_limit))
        return err_set(err, ERR_CANCELLED,
                       "the client no longer waits for the response: send the request again");
    err_set(err, ERR_BUSY, "other queries use the memory for queries; try again in a few seconds");
    err->retry_after_s = QUERY_MEMORY_RETRY_S;
    return ERR_BUSY;
}

/* ---- called by requests ---- */

void query_memory_enter(struct query_memory *memory, struct arena *arena,
                        struct query_memory_slot **slots, struct store_query *query)
{
    struct query_memory_slot *slot = arena_new(arena, struct query_memory_slot, 1);
    slot->memory = memory;
    slot->beside = *slots;
    slot->tenant_id = query->tenant_id;
    slot->wait_limit = query->wait_limit;
    slot->calls = (struct store_memory){.grow = grow_slot, .wait = wait_for_whole, .context = slot};
    query->memory = &slot->calls;
    *slots = slot;
}

void query_memory_leave(struct query_memory_slot **slots)
{
    uint64_t bytes = 0;
    for (struct query_memory_slot *slot = *slots; slot; slot = slot->beside) {
        pthread_mutex_lock(&slot->memory->mutex);
        bytes += slot->held_bytes;
        set_held(slot, 0);
        pthread_mutex_unlock(&slot->memory->mutex);
    }
    *slots = NULL;
    /* Freed memory in small pieces stays with the process otherwise, beside that of later queries.
     */
    if (bytes > TRIMMED_BYTES)
        mem_trim();
}

/*
 * Two lists under one mutex: held contains the slots of requests that a worker is handling, waiting
 * those of requests that were put aside, in order of arrival. A slot is free for a request if the
 * counts of held slots allow it: of all, and of those with its key, its source and its client, and
 * if it has no credentials, of all such clients. The same counts of the waiting list limit what is
 * put aside.
 *
 * concurrency_limit_give passes the returned slot on: it scans the waiting list, skips requests for
 * which no slot is free, and wakes one of the others outside of the mutex. So a share with many
 * readers delays only them. No thread waits here. The lists are short (a slot per worker, and a
 * bounded number of waiting requests), so all scans are linear.
 *
 * To choose the request, a table has two numbers for each client: for how long it has held slots of
 * late, and the number of its last slot, counted from 1. Clients whose names hash to the same entry
 * of the table count as one, also where a full list is reduced; the hash has a secret seed, so that
 * no client can choose names that share an entry. Two clients, the first with quick requests 1, 2
 * and 3 in the list and the second with request 4, are served in the order 1, 4, 2, 3. If each
 * request of the first takes seconds, the second is served first for minutes, however many requests
 * it makes: the order by the last slot alone let 16 addresses with reports of 19 s keep an address
 * with a report of 10 ms waiting for all of theirs.
 */
#include "api/http/concurrency_limit.h"

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    SERVED_BITS = 18, /* so many that clients hardly ever share an entry */
    SERVED_ENTRIES = 1 << SERVED_BITS,
    MIN_WAITING_OF_ADDRESS = 16, /* in a short list */
    HALF_LIFE_S = 60,            /* after it, half of a held time still counts */
    EQUAL_MS = 64,               /* held times are compared in whole multiples of this */
};

/* The time for which a client has held slots, as it counted at at_s. */
struct held_time {
    float ms;
    uint32_t at_s;
};

struct concurrency_limit {
    pthread_mutex_t mutex; /* guards the members below, and the fields of all slots in a list */
    int max_held;
    int max_held_of_one;
    int max_held_of_team;
    int max_held_anonymous; /* by all clients without credentials together */
    int max_waiting;
    size_t waiting_bytes; /* limit of the bodies of one client's waiting requests */
    int held_count;
    int waiting_count;
    struct concurrency_slot *held;
    struct concurrency_slot *waiting; /* in order of arrival */
    uint64_t slot_count;              /* slots given since the start */
    uint64_t seed;   /* secret; makes the place of a client in entries unpredictable */
    uint64_t factor; /* likewise, odd */
    int64_t (*now_ns)(void);
    struct held_time times[SERVED_ENTRIES];
    uint64_t served[SERVED_ENTRIES]; /* slot_count when a client got its last slot; 0: none did */
    uint32_t counts[SERVED_ENTRIES]; /* for find_replaced; 0 between its calls */
};

static int half_of(int count)
{
    return (count + 1) / 2;
}

struct concurrency_limit *concurrency_limit_create(int worker_count, int max_waiting)
{
    struct concurrency_limit *concurrency = mem_new(struct concurrency_limit, 1);
    pthread_mutex_init(&concurrency->mutex, NULL);
    digest_random(&concurrency->seed, sizeof(concurrency->seed));
    digest_random(&concurrency->factor, sizeof(concurrency->factor));
    concurrency->factor |= 1;
    int reserve = (worker_count + 3) / 4;
    concurrency->max_held = worker_count - reserve > 1 ? worker_count - reserve : 1;
    concurrency->max_held_of_one = worker_count / 4 > 1 ? worker_count / 4 : 1;
    concurrency->max_held_of_team = worker_count / 2 > 1 ? worker_count / 2 : 1;
    concurrency->max_held_anonymous = half_of(concurrency->max_held);
    concurrency->max_waiting = max_waiting;
    concurrency->waiting_bytes = CONCURRENCY_LIMIT_WAITING_BYTES;
    concurrency->now_ns = clock_monotonic_ns;
    return concurrency;
}

void concurrency_limit_set_clock(struct concurrency_limit *concurrency, int64_t (*now_ns)(void))
{
    concurrency->now_ns = now_ns;
}

void concurrency_limit_set_waiting_bytes(struct concurrency_limit *concurrency, size_t bytes)
{
    concurrency->waiting_bytes = bytes;
}

struct concurrency_limit *concurrency_limit_create_shares(int worker_count, int max_waiting)
{
    struct concurrency_limit *concurrency = concurrency_limit_create(worker_count, max_waiting);
    concurrency->max_held = worker_count;
    concurrency->max_held_of_one = concurrency->max_held_of_team;
    concurrency->max_held_anonymous = concurrency->max_held_of_team;
    return concurrency;
}

void concurrency_limit_destroy(struct concurrency_limit *concurrency)
{
    if (!concurrency)
        return;
    assert(!concurrency->held && !concurrency->waiting);
    pthread_mutex_destroy(&concurrency->mutex);
    mem_free(concurrency);
}

/* The slots of a list that have the same key, source or client as a wanted one, and those of
 * clients without credentials. */
struct slot_counts {
    int key, source, client, anonymous;
    int light_of_client, light_of_anonymous;
    size_t client_bytes; /* of the key for a slot without a client */
    size_t anonymous_bytes;
};

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Called with the lock held. */
static struct slot_counts count_slots(const struct concurrency_slot *list,
                                      const struct concurrency_slot *wanted)
{
    struct slot_counts counts = {0};
    for (const struct concurrency_slot *slot = list; slot; slot = slot->next) {
        counts.key += is_same(slot->key, wanted->key);
        counts.source += is_same(slot->source, wanted->source);
        counts.client += is_same(slot->client, wanted->client);
        counts.anonymous += slot->is_anonymous;
        counts.light_of_client += slot->is_light && is_same(slot->client, wanted->client);
        counts.light_of_anonymous += slot->is_light && slot->is_anonymous;
        if (wanted->client ? is_same(slot->client, wanted->client)
                           : is_same(slot->key, wanted->key))
            counts.client_bytes += slot->bytes;
        if (slot->is_anonymous)
            counts.anonymous_bytes += slot->bytes;
    }
    return counts;
}

/* One light slot more than most may be held beside slow ones. */
static bool is_within(int held, int light, int most, const struct concurrency_slot *wanted)
{
    return held < most || (held == most && wanted->is_light && light == 0);
}

/* Called with the lock held. Few slots are held, so a scan is cheap. */
static bool is_free(const struct concurrency_limit *concurrency,
                    const struct concurrency_slot *wanted)
{
    const struct slot_counts counts = count_slots(concurrency->held, wanted);
    const int max_of_client =
        wanted->is_anonymous ? concurrency->max_held_of_one : concurrency->max_held_of_team;
    return concurrency->held_count < concurrency->max_held && counts.source == 0 &&
           counts.key < (wanted->most ? wanted->most : concurrency->max_held_of_one) &&
           is_within(counts.client, counts.light_of_client, max_of_client, wanted) &&
           (!wanted->is_anonymous || is_within(counts.anonymous, counts.light_of_anonymous,
                                               concurrency->max_held_anonymous, wanted));
}

/* The entry of the client in the table: FNV-1a with a secret start, and multiplicative hashing with
 * a secret factor, of its name; of the source or the key for a slot without one. */
static uint32_t client_entry(const struct concurrency_limit *concurrency,
                             const struct concurrency_slot *slot)
{
    const char *name = slot->client ? slot->client : slot->source ? slot->source : slot->key;
    uint64_t hash = concurrency->seed;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(1099511628211);
    return (uint32_t)(hash * concurrency->factor >> (64 - SERVED_BITS));
}

/* The time for which a client has held slots of late. */
static float held_ms(const struct held_time *time, int64_t now_ns)
{
    const uint32_t passed_s = (uint32_t)(now_ns / CLOCK_NS_PER_S) - time->at_s;
    return time->ms > 0 ? time->ms * exp2f(-(float)passed_s / HALF_LIFE_S) : 0;
}

/* Called with the lock held. */
static void hold_slot(struct concurrency_limit *concurrency, struct concurrency_slot *slot)
{
    slot->entry = client_entry(concurrency, slot);
    concurrency->served[slot->entry] = ++concurrency->slot_count;
    slot->held_ns = concurrency->now_ns();
    slot->is_held = true;
    slot->next = concurrency->held;
    concurrency->held = slot;
    concurrency->held_count++;
}

bool concurrency_limit_take(struct concurrency_limit *concurrency, struct concurrency_slot *slot)
{
    pthread_mutex_lock(&concurrency->mutex);
    /* Requests that wait cannot use this slot: if the rules allowed it, they would have got it when
     * it was given back (wake_free). */
    if (!slot->is_held && is_free(concurrency, slot))
        hold_slot(concurrency, slot);
    bool is_held = slot->is_held;
    pthread_mutex_unlock(&concurrency->mutex);
    return is_held;
}

/* The bounds of the waiting list that keep a request out of it. */
struct full {
    bool for_client; /* too many of the client or the source */
    bool for_key;
    bool for_anonymous;
    bool for_bytes; /* of clients without credentials */
    bool for_all;
};

/* A single request may always wait. */
static bool exceeds(size_t waiting_bytes, const struct concurrency_slot *wanted, size_t max_bytes)
{
    return waiting_bytes > 0 && wanted->bytes > 0 && waiting_bytes + wanted->bytes > max_bytes;
}

/* Called with the lock held. An address may have as many waiting requests as there may be viewers
 * behind it who open a link at the same time. */
static struct full find_full(const struct concurrency_limit *concurrency,
                             const struct concurrency_slot *wanted)
{
    const struct slot_counts counts = count_slots(concurrency->waiting, wanted);
    const int half = half_of(concurrency->max_waiting);
    int of_client = half;
    if (wanted->is_anonymous && half > MIN_WAITING_OF_ADDRESS)
        of_client = half > 2 * MIN_WAITING_OF_ADDRESS ? half_of(half) : MIN_WAITING_OF_ADDRESS;
    return (struct full){
        .for_client = counts.client >= of_client ||
                      counts.source >= CONCURRENCY_LIMIT_WAITING_OF_SOURCE ||
                      exceeds(counts.client_bytes, wanted, concurrency->waiting_bytes),
        .for_key = counts.key >= half,
        .for_anonymous = wanted->is_anonymous && counts.anonymous >= half,
        .for_bytes = wanted->is_anonymous &&
                     exceeds(counts.anonymous_bytes, wanted, 2 * concurrency->waiting_bytes),
        .for_all = concurrency->waiting_count >= concurrency->max_waiting,
    };
}

/* Whether the request `wanted` fits in the list if it replaces that of `slot`. */
static bool is_replaceable_for(const struct concurrency_slot *slot, struct full full,
                               const struct concurrency_slot *wanted)
{
    return (!full.for_key || is_same(slot->key, wanted->key)) &&
           (!full.for_anonymous || slot->is_anonymous) &&
           (!full.for_bytes || (slot->is_anonymous && slot->bytes >= wanted->bytes));
}

/* Called with the lock held. Returns the link to the request that the wanted one replaces: the last
 * one of the client that has the most replaceable requests. NULL if that client would then have
 * fewer of them than the client of the wanted request: two clients must not replace each other's
 * requests alternately. */
static struct concurrency_slot **find_replaced(struct concurrency_limit *concurrency,
                                               struct full full,
                                               const struct concurrency_slot *wanted)
{
    uint32_t *counts = concurrency->counts;
    for (const struct concurrency_slot *slot = concurrency->waiting; slot; slot = slot->next)
        counts[slot->entry] += is_replaceable_for(slot, full, wanted);
    struct concurrency_slot **replaced = NULL;
    uint32_t most = counts[client_entry(concurrency, wanted)] + 2;
    for (struct concurrency_slot **link = &concurrency->waiting; *link; link = &(*link)->next) {
        const uint32_t count = counts[(*link)->entry];
        if (is_replaceable_for(*link, full, wanted) && count >= most) {
            replaced = link;
            most = count;
        }
    }
    for (const struct concurrency_slot *slot = concurrency->waiting; slot; slot = slot->next)
        counts[slot->entry] = 0;
    return replaced;
}

/* Called with the lock held: removes the slot that *link points to from the list. */
static struct concurrency_slot *unlink_waiting(struct concurrency_limit *concurrency,
                                               struct concurrency_slot **link)
{
    struct concurrency_slot *slot = *link;
    *link = slot->next;
    concurrency->waiting_count--;
    atomic_store(&slot->is_waiting, false);
    return slot;
}

/* Called with the lock held. */
static void add_waiting(struct concurrency_limit *concurrency, struct concurrency_slot *slot)
{
    struct concurrency_slot **link = &concurrency->waiting;
    while (*link)
        link = &(*link)->next;
    slot->entry = client_entry(concurrency, slot);
    slot->next = NULL;
    *link = slot;
    concurrency->waiting_count++;
    atomic_store(&slot->is_waiting, true);
}

enum concurrency_limit_outcome concurrency_limit_take_or_wait(struct concurrency_limit *concurrency,
                                                              struct concurrency_slot *slot)
{
    enum concurrency_limit_outcome outcome = CONCURRENCY_LIMIT_REFUSED;
    struct concurrency_slot *replaced = NULL;
    pthread_mutex_lock(&concurrency->mutex);
    if (is_free(concurrency, slot)) {
        hold_slot(concurrency, slot);
        outcome = CONCURRENCY_LIMIT_TAKEN;
    } else {
        const struct full full = find_full(concurrency, slot);
        const bool is_full =
            full.for_client || full.for_key || full.for_anonymous || full.for_bytes || full.for_all;
        struct concurrency_slot **link =
            is_full && !full.for_client ? find_replaced(concurrency, full, slot) : NULL;
        if (link)
            replaced = unlink_waiting(concurrency, link);
        if (link || !is_full) {
            add_waiting(concurrency, slot);
            outcome = CONCURRENCY_LIMIT_WAITING;
        }
    }
    pthread_mutex_unlock(&concurrency->mutex);
    if (replaced)
        replaced->refuse(replaced);
    return outcome;
}

bool concurrency_limit_leave(struct concurrency_limit *concurrency, struct concurrency_slot *slot)
{
    if (!atomic_load(&slot->is_waiting))
        return false;
    pthread_mutex_lock(&concurrency->mutex);
    struct concurrency_slot **link = &concurrency->waiting;
    while (*link && *link != slot)
        link = &(*link)->next;
    bool has_left = *link != NULL;
    if (has_left)
        unlink_waiting(concurrency, link);
    pthread_mutex_unlock(&concurrency->mutex);
    return has_left;
}

/* Called with the lock held. */
static void add_held_time(struct concurrency_limit *concurrency,
                          const struct concurrency_slot *slot)
{
    struct held_time *time = &concurrency->times[slot->entry];
    const int64_t now_ns = concurrency->now_ns();
    time->ms = held_ms(time, now_ns) + (float)(now_ns - slot->held_ns) / CLOCK_NS_PER_MS;
    time->at_s = (uint32_t)(now_ns / CLOCK_NS_PER_S);
}

/* Makes a waiting slot that is free a held one and returns it: the first of the client that comes
 * next. NULL: none is free. */
static struct concurrency_slot *pass_on(struct concurrency_limit *concurrency)
{
    struct concurrency_slot *woken = NULL;
    pthread_mutex_lock(&concurrency->mutex);
    struct concurrency_slot **next = NULL;
    uint64_t next_served = UINT64_MAX, next_time = UINT64_MAX;
    const int64_t now_ns = concurrency->now_ns();
    for (struct concurrency_slot **link = &concurrency->waiting; *link; link = &(*link)->next) {
        const uint32_t entry = (*link)->entry;
        const uint64_t time = (uint64_t)held_ms(&concurrency->times[entry], now_ns) / EQUAL_MS;
        const uint64_t served = concurrency->served[entry];
        const bool is_before = time != next_time ? time < next_time : served < next_served;
        if (is_before && is_free(concurrency, *link)) {
            next = link;
            next_time = time;
            next_served = served;
        }
    }
    if (next) {
        woken = unlink_waiting(concurrency, next);
        hold_slot(concurrency, woken);
    }
    pthread_mutex_unlock(&concurrency->mutex);
    return woken;
}

/* Wakes all requests that may have a slot now: one slot that was given back may be free for
 * several, if one of them waited for the key and another for the source. */
static void wake_free(struct concurrency_limit *concurrency)
{
    for (struct concurrency_slot *woken; (woken = pass_on(concurrency));)
        woken->wake(woken);
}

void concurrency_limit_give(struct concurrency_limit *concurrency, struct concurrency_slot *slot)
{
    pthread_mutex_lock(&concurrency->mutex);
    struct concurrency_slot **link = &concurrency->held;
    while (*link != slot)
        link = &(*link)->next;
    *link = slot->next;
    add_held_time(concurrency, slot);
    slot->is_held = false;
    concurrency->held_count--;
    pthread_mutex_unlock(&concurrency->mutex);
    wake_free(concurrency);
}

void concurrency_limit_make_slow(struct concurrency_limit *shares, struct concurrency_slot *slot)
{
    pthread_mutex_lock(&shares->mutex);
    slot->is_light = false;
    pthread_mutex_unlock(&shares->mutex);
    wake_free(shares);
}

int concurrency_limit_waiting_count(struct concurrency_limit *concurrency)
{
    pthread_mutex_lock(&concurrency->mutex);
    int count = concurrency->waiting_count;
    pthread_mutex_unlock(&concurrency->mutex);
    return count;
}

int concurrency_limit_held_count(struct concurrency_limit *concurrency)
{
    pthread_mutex_lock(&concurrency->mutex);
    int count = concurrency->held_count;
    pthread_mutex_unlock(&concurrency->mutex);
    return count;
}

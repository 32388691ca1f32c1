#include "lib/base/flight_cache.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/wait_limit.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

/* Most values are large (profiles, responses), but there can be tens of thousands of small ones
 * (blocks). */
enum {
    BUCKET_COUNT = 8192,
    CHECK_MS = 500 /* how often a waiting thread checks for cancellation */
};

enum entry_state { ENTRY_MAKING, ENTRY_READY, ENTRY_FAILED };

struct flight_entry {
    struct flight_cache *cache;
    struct flight_entry *next_in_bucket;
    struct flight_entry *newer; /* in the list of idle entries, only while it is idle */
    struct flight_entry *older;
    char *key;
    uint32_t hash;
    enum entry_state state;
    bool is_listed; /* in the table, which holds one reference */
    size_t reference_count;
    bool is_idle;    /* ready, in the table, and no caller has a reference */
    int64_t used_ns; /* monotonic: since when it is idle */
    void *value;
    size_t bytes;
    struct err failure;
};

struct flight_cache {
    pthread_mutex_t mutex;
    pthread_cond_t has_finished; /* some entry left ENTRY_MAKING */
    size_t max_bytes;
    size_t bytes;
    uint64_t made_count;
    int64_t hold_ns;
    void (*destroy)(void *value);
    struct flight_entry *newest; /* idle entries, by last use: those that can be evicted */
    struct flight_entry *oldest;
    struct flight_entry *buckets[BUCKET_COUNT];
};

void flight_cache_set_hold(struct flight_cache *cache, int64_t hold_ns)
{
    cache->hold_ns = hold_ns;
}

void flight_cache_set_max_bytes(struct flight_cache *cache, size_t max_bytes)
{
    pthread_mutex_lock(&cache->mutex);
    cache->max_bytes = max_bytes;
    pthread_mutex_unlock(&cache->mutex);
}

/* FNV-1a. Clients influence keys. Colliding keys lengthen the list of one bucket, by no more
 * than fits the cache; they never return the value of another key, because whole keys are
 * compared. */
static uint32_t hash_key(const char *key)
{
    uint32_t hash = 2166136261U;
    for (; *key; key++)
        hash = (hash ^ (uint8_t)*key) * 16777619U;
    return hash;
}

struct flight_cache *flight_cache_create(size_t max_bytes, void (*destroy)(void *value))
{
    struct flight_cache *cache = mem_new(struct flight_cache, 1);
    cache->max_bytes = max_bytes;
    cache->destroy = destroy;
    pthread_mutex_init(&cache->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&cache->has_finished, &attributes);
    pthread_condattr_destroy(&attributes);
    return cache;
}

/* Removes the entry from the list of idle entries, if it is there. Only idle entries are in that
 * list, because evicting a value in use would free no memory, and the next request would make it a
 * second time. */
static void list_remove(struct flight_cache *cache, struct flight_entry *entry)
{
    if (!entry->is_idle)
        return;
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
    entry->newer = entry->older = NULL;
    entry->is_idle = false;
}

/* Adds the entry as the most recently used one if it became idle. */
static void list_add_idle(struct flight_cache *cache, struct flight_entry *entry)
{
    if (entry->is_idle || !entry->is_listed || entry->state != ENTRY_READY ||
        entry->reference_count > 1)
        return;
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
    entry->is_idle = true;
    entry->used_ns = cache->hold_ns ? clock_monotonic_ns() : 0;
}

static struct flight_entry *table_find(struct flight_cache *cache, const char *key, uint32_t hash)
{
    struct flight_entry *entry = cache->buckets[hash % BUCKET_COUNT];
    while (entry && (entry->hash != hash || strcmp(entry->key, key) != 0))
        entry = entry->next_in_bucket;
    return entry;
}

/* Drops one reference. Returns true when it was the last; the caller then frees the entry after
 * unlocking. */
static bool drop_reference(struct flight_entry *entry)
{
    assert(entry->reference_count > 0);
    return --entry->reference_count == 0;
}

static void entry_free(struct flight_entry *entry)
{
    if (entry->value)
        entry->cache->destroy(entry->value);
    mem_free(entry->key);
    mem_free(entry);
}

/* Removes the entry from the table. If the table held the last reference, the entry is added to
 * *garbage. */
static void remove_from_table(struct flight_cache *cache, struct flight_entry *entry,
                              struct flight_entry **garbage)
{
    struct flight_entry **link = &cache->buckets[entry->hash % BUCKET_COUNT];
    while (*link != entry)
        link = &(*link)->next_in_bucket;
    *link = entry->next_in_bucket;
    entry->next_in_bucket = NULL;
    list_remove(cache, entry);
    entry->is_listed = false;
    cache->bytes -= entry->bytes;
    if (drop_reference(entry)) {
        entry->next_in_bucket = *garbage;
        *garbage = entry;
    }
}

static void free_all(struct flight_entry *garbage)
{
    while (garbage) {
        struct flight_entry *next = garbage->next_in_bucket;
        entry_free(garbage);
        garbage = next;
    }
}

/* The memory of an entry. It includes the key: clients influence keys, which may be longer than the
 * value. */
static size_t entry_bytes(const struct flight_entry *entry, size_t value_bytes)
{
    return value_bytes + sizeof(*entry) + strlen(entry->key) + 1;
}

static void evict_over_limit(struct flight_cache *cache, struct flight_entry **garbage)
{
    const int64_t since_ns = cache->hold_ns ? clock_monotonic_ns() - cache->hold_ns : INT64_MAX;
    while (cache->oldest && cache->bytes > cache->max_bytes && cache->oldest->used_ns <= since_ns)
        remove_from_table(cache, cache->oldest, garbage);
}

static struct flight_entry *entry_create(struct flight_cache *cache, const char *key, uint32_t hash)
{
    struct flight_entry *entry = mem_new(struct flight_entry, 1);
    entry->cache = cache;
    entry->key = mem_strdup(key);
    entry->hash = hash;
    entry->state = ENTRY_MAKING;
    entry->is_listed = true;
    entry->reference_count = 2; /* the table and the caller */
    entry->next_in_bucket = cache->buckets[hash % BUCKET_COUNT];
    cache->buckets[hash % BUCKET_COUNT] = entry;
    return entry;
}

/* Waits until the entry is made. The caller holds the mutex and a reference, and keeps both. */
static enum err_code wait_until_made(struct flight_cache *cache, struct flight_entry *entry,
                                     const struct wait_limit *wait_limit, struct err *err)
{
    const int64_t last_ns = clock_monotonic_ns() + FLIGHT_WAIT_S * CLOCK_NS_PER_S;
    while (entry->state == ENTRY_MAKING && clock_monotonic_ns() < last_ns) {
        const int64_t left_ms = wait_limit_left_ms(wait_limit, CHECK_MS);
        if (!left_ms)
            return err_set(err, ERR_CANCELLED,
                           "cancelled: no request waits for this value any more");
        const int64_t until_ns = clock_monotonic_ns() + left_ms * CLOCK_NS_PER_MS;
        const struct timespec until = {until_ns / CLOCK_NS_PER_S, until_ns % CLOCK_NS_PER_S};
        pthread_cond_timedwait(&cache->has_finished, &cache->mutex, &until);
    }
    if (entry->state == ENTRY_FAILED) {
        *err = entry->failure;
        return err->code;
    }
    if (entry->state == ENTRY_READY)
        return ERR_NONE;
    err_set(err, ERR_BUSY,
            "this profile is being prepared for others and takes long; try again in a few seconds");
    err->retry_after_s = 10;
    return ERR_BUSY;
}

/* Makes the value. Only the thread that created the entry calls it, without the mutex. */
static enum err_code make_value(struct flight_cache *cache, struct flight_entry *entry,
                                flight_make *make, void *context, struct err *err)
{
    void *value = NULL;
    size_t bytes = 0;
    enum err_code code = make(context, &value, &bytes, err);
    struct flight_entry *garbage = NULL;
    pthread_mutex_lock(&cache->mutex);
    cache->made_count++;
    if (code) {
        entry->state = ENTRY_FAILED;
        entry->failure = *err;
        if (entry->is_listed)
            remove_from_table(cache, entry, &garbage);
    } else {
        entry->state = ENTRY_READY;
        entry->value = value;
        if (entry->is_listed && bytes > cache->max_bytes) {
            /* too large to cache: the waiting threads use it, then it is freed */
            remove_from_table(cache, entry, &garbage);
        } else if (entry->is_listed) {
            entry->bytes = entry_bytes(entry, bytes);
            cache->bytes += entry->bytes;
            evict_over_limit(cache, &garbage);
        }
    }
    pthread_cond_broadcast(&cache->has_finished);
    pthread_mutex_unlock(&cache->mutex);
    free_all(garbage);
    return code;
}

enum err_code flight_cache_ref(struct flight_cache *cache, const char *key, flight_make *make,
                               void *context, struct flight_entry **ret_entry, struct err *err)
{
    return flight_cache_ref_within(cache, key, NULL, make, context, ret_entry, err);
}

static enum err_code ref_once(struct flight_cache *cache, const char *key,
                              const struct wait_limit *wait_limit, flight_make *make, void *context,
                              struct flight_entry **ret_entry, bool *ret_is_made_elsewhere,
                              struct err *err)
{
    uint32_t hash = hash_key(key);
    pthread_mutex_lock(&cache->mutex);
    struct flight_entry *entry = table_find(cache, key, hash);
    enum err_code code;
    *ret_is_made_elsewhere = entry != NULL;
    if (entry) {
        entry->reference_count++;
        list_remove(cache, entry);
        code = wait_until_made(cache, entry, wait_limit, err);
        pthread_mutex_unlock(&cache->mutex);
    } else {
        entry = entry_create(cache, key, hash);
        pthread_mutex_unlock(&cache->mutex);
        code = make_value(cache, entry, make, context, err);
    }
    if (code) {
        flight_cache_unref(entry);
        return code;
    }
    *ret_entry = entry;
    return ERR_NONE;
}

enum err_code flight_cache_ref_within(struct flight_cache *cache, const char *key,
                                      const struct wait_limit *wait_limit, flight_make *make,
                                      void *context, struct flight_entry **ret_entry,
                                      struct err *err)
{
    enum err_code code;
    bool is_made_elsewhere;
    do {
        code = ref_once(cache, key, wait_limit, make, context, ret_entry, &is_made_elsewhere, err);
    } while (code == ERR_CANCELLED && is_made_elsewhere && !wait_limit_is_over(wait_limit));
    return code;
}

struct flight_entry *flight_cache_try(struct flight_cache *cache, const char *key)
{
    pthread_mutex_lock(&cache->mutex);
    struct flight_entry *entry = table_find(cache, key, hash_key(key));
    if (entry && entry->state == ENTRY_READY) {
        entry->reference_count++;
        list_remove(cache, entry);
    } else {
        entry = NULL;
    }
    pthread_mutex_unlock(&cache->mutex);
    return entry;
}

void flight_cache_give(struct flight_cache *cache, const char *key, void *value, size_t bytes)
{
    const uint32_t hash = hash_key(key);
    struct flight_entry *garbage = NULL;
    pthread_mutex_lock(&cache->mutex);
    const bool is_kept = bytes <= cache->max_bytes && !table_find(cache, key, hash);
    if (is_kept) {
        struct flight_entry *entry = entry_create(cache, key, hash);
        entry->reference_count = 1; /* the table alone */
        entry->state = ENTRY_READY;
        entry->value = value;
        entry->bytes = entry_bytes(entry, bytes);
        cache->bytes += entry->bytes;
        list_add_idle(cache, entry);
        evict_over_limit(cache, &garbage);
    }
    pthread_mutex_unlock(&cache->mutex);
    if (!is_kept)
        cache->destroy(value);
    free_all(garbage);
}

void *flight_cache_get(const struct flight_entry *entry)
{
    return entry->value;
}

void flight_cache_unref(struct flight_entry *entry)
{
    if (!entry)
        return;
    struct flight_cache *cache = entry->cache;
    struct flight_entry *garbage = NULL;
    pthread_mutex_lock(&cache->mutex);
    if (drop_reference(entry)) {
        garbage = entry; /* no longer in the table, so no other thread can find it */
    } else {
        list_add_idle(cache, entry);
        if (cache->bytes > cache->max_bytes)
            evict_over_limit(cache, &garbage);
        if (entry->is_idle && cache->bytes > cache->max_bytes)
            remove_from_table(cache, entry, &garbage); /* all others are in use or held */
    }
    pthread_mutex_unlock(&cache->mutex);
    free_all(garbage);
}

void flight_cache_forget(struct flight_cache *cache, const char *key)
{
    struct flight_entry *garbage = NULL;
    pthread_mutex_lock(&cache->mutex);
    struct flight_entry *entry = table_find(cache, key, hash_key(key));
    if (entry)
        remove_from_table(cache, entry, &garbage);
    pthread_mutex_unlock(&cache->mutex);
    free_all(garbage);
}

void flight_cache_forget_prefix(struct flight_cache *cache, const char *prefix)
{
    struct flight_entry *garbage = NULL;
    size_t prefix_bytes = strlen(prefix);
    pthread_mutex_lock(&cache->mutex);
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        for (struct flight_entry *entry = cache->buckets[i], *next; entry; entry = next) {
            next = entry->next_in_bucket;
            if (strncmp(entry->key, prefix, prefix_bytes) == 0)
                remove_from_table(cache, entry, &garbage);
        }
    }
    pthread_mutex_unlock(&cache->mutex);
    free_all(garbage);
}

bool flight_cache_evict_oldest(struct flight_cache *cache, const char *prefix)
{
    const size_t prefix_bytes = strlen(prefix);
    struct flight_entry *garbage = NULL;
    pthread_mutex_lock(&cache->mutex);
    struct flight_entry *entry = cache->oldest;
    while (entry && strncmp(entry->key, prefix, prefix_bytes) != 0)
        entry = entry->newer;
    const bool is_found = entry != NULL;
    if (is_found)
        remove_from_table(cache, entry, &garbage);
    pthread_mutex_unlock(&cache->mutex);
    free_all(garbage);
    return is_found;
}

void flight_cache_destroy(struct flight_cache *cache)
{
    if (!cache)
        return;
    flight_cache_forget_prefix(cache, "");
    pthread_cond_destroy(&cache->has_finished);
    pthread_mutex_destroy(&cache->mutex);
    mem_free(cache);
}

size_t flight_cache_bytes(struct flight_cache *cache)
{
    pthread_mutex_lock(&cache->mutex);
    size_t bytes = cache->bytes;
    pthread_mutex_unlock(&cache->mutex);
    return bytes;
}

uint64_t flight_cache_made_count(struct flight_cache *cache)
{
    pthread_mutex_lock(&cache->mutex);
    uint64_t count = cache->made_count;
    pthread_mutex_unlock(&cache->mutex);
    return count;
}

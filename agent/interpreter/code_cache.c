#include "agent/interpreter/code_cache.h"

enum {
    ENTRIES_MAX = 16384,
    ARENA_MAX_BYTES = 4 << 20,
};

void code_cache_init(struct code_cache *cache, const struct code_share *share, size_t entry_bytes,
                     uint32_t most_bytes)
{
    *cache = (struct code_cache){.share = *share,
                                 .entry_bytes = (uint32_t)entry_bytes,
                                 .most_bytes = most_bytes,
                                 .arena = arena_create()};
}

static void free_all(struct code_cache *cache)
{
    map_u64_fini(&cache->by_address);
    arena_destroy(cache->arena);
    mem_free(cache->entries);
}

void code_cache_fini(struct code_cache *cache)
{
    code_share_set(&cache->share, 0);
    free_all(cache);
}

static uint64_t bytes_of(const struct code_cache *cache)
{
    return arena_bytes(cache->arena) + (uint64_t)cache->capacity * cache->entry_bytes +
           (uint64_t)cache->by_address.capacity * sizeof(*cache->by_address.slots);
}

void code_cache_count(struct code_cache *cache)
{
    code_share_set(&cache->share, bytes_of(cache));
}

static void forget_all(struct code_cache *cache)
{
    free_all(cache);
    cache->arena = arena_create();
    cache->entries = NULL;
    cache->count = cache->capacity = 0;
    code_cache_count(cache);
}

/* For one function more: each part of it may become twice as large. */
static bool has_room(const struct code_cache *cache)
{
    return cache->count < ENTRIES_MAX && arena_bytes(cache->arena) <= ARENA_MAX_BYTES &&
           code_share_allows(&cache->share, 2 * bytes_of(cache) + cache->most_bytes);
}

static uint32_t add(struct code_cache *cache, uint64_t address)
{
    if (cache->count == cache->capacity) {
        cache->capacity = cache->capacity ? 2 * cache->capacity : 64;
        cache->entries = mem_resize(cache->entries, cache->capacity, cache->entry_bytes);
    }
    return map_u64_add(&cache->by_address, address, cache->count++);
}

static void *entry(const struct code_cache *cache, uint32_t index)
{
    return cache->entries + (size_t)index * cache->entry_bytes;
}

void *code_cache_find(const struct code_cache *cache, uint64_t address)
{
    const uint32_t index = map_u64_find(&cache->by_address, address);
    return index == MAP_ABSENT ? NULL : entry(cache, index);
}

void *code_cache_put(struct code_cache *cache, uint64_t address)
{
    if (!has_room(cache))
        forget_all(cache);
    if (!has_room(cache)) {
        cache->into = code_budget_shared(cache->share.budget);
        return arena_alloc(cache->into, 1, cache->entry_bytes);
    }
    cache->into = cache->arena;
    const uint32_t index = map_u64_find(&cache->by_address, address);
    return entry(cache, index == MAP_ABSENT ? add(cache, address) : index);
}

#include "agent/interpreter/code_cache.h"

#include "lib/base/arena.h"

enum {
    ENTRIES_MAX = 16384,
    ARENA_MAX_BYTES = 4 << 20,
};

void code_cache_init(struct code_cache *cache, const struct code_quota *quota, size_t entry_bytes,
                     uint32_t entry_max_bytes)
{
    *cache = (struct code_cache){.quota = *quota,
                                 .entry_bytes = (uint32_t)entry_bytes,
                                 .entry_max_bytes = entry_max_bytes,
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
    code_quota_set(&cache->quota, 0);
    free_all(cache);
}

static uint64_t used_bytes(const struct code_cache *cache)
{
    return arena_bytes(cache->arena) + (uint64_t)cache->capacity * cache->entry_bytes +
           (uint64_t)cache->by_address.capacity * sizeof(*cache->by_address.slots);
}

void code_cache_count(struct code_cache *cache)
{
    code_quota_set(&cache->quota, used_bytes(cache));
}

static void forget_all(struct code_cache *cache)
{
    free_all(cache);
    cache->arena = arena_create();
    cache->entries = NULL;
    cache->count = cache->capacity = 0;
    code_cache_count(cache);
}

/* Whether one more function fits. Each part of the cache doubles when it is full. */
static bool has_space(const struct code_cache *cache)
{
    return cache->count < ENTRIES_MAX && arena_bytes(cache->arena) <= ARENA_MAX_BYTES &&
           code_quota_allows(&cache->quota, 2 * used_bytes(cache) + cache->entry_max_bytes);
}

/* Doubles the entries, as has_space expects. vec_reserve (lib/base/vec.h) does not fit, because the
 * size of an entry is known only at run time. */
static uint32_t add_entry(struct code_cache *cache, uint64_t address)
{
    if (cache->count == cache->capacity) {
        cache->capacity = cache->capacity ? 2 * cache->capacity : 64;
        cache->entries = mem_resize(cache->entries, cache->capacity, cache->entry_bytes);
    }
    return map_u64_add(&cache->by_address, address, cache->count++);
}

static void *entry_at(const struct code_cache *cache, uint32_t index)
{
    return cache->entries + (size_t)index * cache->entry_bytes;
}

void *code_cache_find(const struct code_cache *cache, uint64_t address)
{
    const uint32_t index = map_u64_find(&cache->by_address, address);
    return index == MAP_ABSENT ? NULL : entry_at(cache, index);
}

void *code_cache_put(struct code_cache *cache, uint64_t address)
{
    if (!has_space(cache))
        forget_all(cache);
    if (!has_space(cache)) {
        cache->into = code_budget_shared(cache->quota.budget);
        return arena_alloc(cache->into, 1, cache->entry_bytes);
    }
    cache->into = cache->arena;
    const uint32_t index = map_u64_find(&cache->by_address, address);
    return entry_at(cache, index == MAP_ABSENT ? add_entry(cache, address) : index);
}

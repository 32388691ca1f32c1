#include "lib/base/map.h"

#include "lib/base/digest.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <xxhash.h>

enum { MAP_FIRST_CAPACITY = 16 };

/* A table that is between half and three quarters full has short probe sequences; at 7/8 they would
 * be long. */
static uint32_t capacity_for(uint32_t count)
{
    uint64_t capacity = MAP_FIRST_CAPACITY;
    while (capacity / 4 * 3 < count)
        capacity *= 2;
    assert(capacity <= UINT32_C(1) << 31);
    return (uint32_t)capacity;
}

static bool is_full(uint32_t count, uint32_t capacity)
{
    return (uint64_t)count * 4 >= (uint64_t)capacity * 3;
}

static uint64_t random_number(void)
{
    uint64_t number;
    digest_random(&number, sizeof(number));
    return number;
}

static uint32_t hash_bytes(const struct map_bytes *map, struct span key)
{
    return (uint32_t)XXH3_64bits_withSeed(key.data, key.size, map->seed);
}

static struct map_bytes_slot *new_bytes_slots(uint32_t capacity)
{
    struct map_bytes_slot *slots = mem_new(struct map_bytes_slot, capacity);
    for (uint32_t i = 0; i < capacity; i++)
        slots[i].value = MAP_ABSENT;
    return slots;
}

void map_bytes_init(struct map_bytes *map, uint32_t expected_count)
{
    *map = (struct map_bytes){.seed = random_number(), .capacity = capacity_for(expected_count)};
    map->slots = new_bytes_slots(map->capacity);
}

void map_bytes_fini(struct map_bytes *map)
{
    mem_free(map->slots);
    *map = (struct map_bytes){0};
}

static struct map_bytes_slot *find_bytes_slot(const struct map_bytes *map, struct span key,
                                              uint32_t hash)
{
    uint32_t mask = map->capacity - 1;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
        struct map_bytes_slot *slot = &map->slots[at];
        if (slot->value == MAP_ABSENT || (slot->hash == hash && span_equal(slot->key, key)))
            return slot;
    }
}

uint32_t map_bytes_find(const struct map_bytes *map, struct span key)
{
    if (map->count == 0)
        return MAP_ABSENT;
    return find_bytes_slot(map, key, hash_bytes(map, key))->value;
}

static void grow_bytes(struct map_bytes *map)
{
    struct map_bytes old = *map;
    if (old.capacity == 0) {
        map_bytes_init(map, 0);
        return;
    }
    map->capacity = old.capacity * 2;
    map->slots = new_bytes_slots(map->capacity);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].value != MAP_ABSENT)
            *find_bytes_slot(map, old.slots[i].key, old.slots[i].hash) = old.slots[i];
    }
    mem_free(old.slots);
}

uint32_t map_bytes_add(struct map_bytes *map, struct span key, uint32_t value)
{
    if (is_full(map->count, map->capacity))
        grow_bytes(map);
    uint32_t hash = hash_bytes(map, key);
    struct map_bytes_slot *slot = find_bytes_slot(map, key, hash);
    if (slot->value != MAP_ABSENT)
        return slot->value;
    *slot = (struct map_bytes_slot){.key = key, .hash = hash, .value = value};
    map->count++;
    return value;
}

/*
 * The random factor makes the slots of two keys independent of the keys. The finaliser of
 * MurmurHash3 then mixes every bit into the low bits, which select the slot.
 */
static uint64_t hash_u64(const struct map_u64 *map, uint64_t key)
{
    key *= map->factor;
    key ^= key >> 33;
    key *= UINT64_C(0xff51afd7ed558ccd);
    key ^= key >> 33;
    key *= UINT64_C(0xc4ceb9fe1a85ec53);
    return key ^ key >> 33;
}

static struct map_u64_slot *new_u64_slots(uint32_t capacity)
{
    struct map_u64_slot *slots = mem_new(struct map_u64_slot, capacity);
    for (uint32_t i = 0; i < capacity; i++)
        slots[i].value = MAP_ABSENT;
    return slots;
}

void map_u64_init(struct map_u64 *map, uint32_t expected_count)
{
    *map =
        (struct map_u64){.factor = random_number() | 1, .capacity = capacity_for(expected_count)};
    map->slots = new_u64_slots(map->capacity);
}

void map_u64_fini(struct map_u64 *map)
{
    mem_free(map->slots);
    *map = (struct map_u64){0};
}

static struct map_u64_slot *find_u64_slot(const struct map_u64 *map, uint64_t key)
{
    uint32_t mask = map->capacity - 1;
    for (uint32_t at = (uint32_t)hash_u64(map, key) & mask;; at = (at + 1) & mask) {
        struct map_u64_slot *slot = &map->slots[at];
        if (slot->value == MAP_ABSENT || slot->key == key)
            return slot;
    }
}

uint32_t map_u64_find(const struct map_u64 *map, uint64_t key)
{
    if (map->count == 0)
        return MAP_ABSENT;
    return find_u64_slot(map, key)->value;
}

static void grow_u64(struct map_u64 *map)
{
    struct map_u64 old = *map;
    if (old.capacity == 0) {
        map_u64_init(map, 0);
        return;
    }
    map->capacity = old.capacity * 2;
    map->slots = new_u64_slots(map->capacity);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].value != MAP_ABSENT)
            *find_u64_slot(map, old.slots[i].key) = old.slots[i];
    }
    mem_free(old.slots);
}

uint32_t map_u64_add(struct map_u64 *map, uint64_t key, uint32_t value)
{
    if (is_full(map->count, map->capacity))
        grow_u64(map);
    struct map_u64_slot *slot = find_u64_slot(map, key);
    if (slot->value != MAP_ABSENT)
        return slot->value;
    *slot = (struct map_u64_slot){.key = key, .value = value};
    map->count++;
    return value;
}

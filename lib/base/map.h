/*
 * map: hash maps from bytes or from a 64-bit number to a 32-bit number, for interning and lookup.
 *
 * Open addressing with linear probing; the hash of bytes is XXH3. A map_bytes borrows the bytes of
 * its keys, which must live as long as the map. Keys cannot be removed. A lookup costs one hash and
 * about 1.5 probes for any keys: each map is seeded with a random number, so that an attacker
 * cannot choose keys that collide. A map of all zeros is empty and ready for use. Threads: one
 * writer, or any number of readers.
 */
#ifndef LIB_BASE_MAP_H
#define LIB_BASE_MAP_H

#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define MAP_ABSENT UINT32_MAX

struct map_bytes_slot {
    struct span key;
    uint32_t hash;
    uint32_t value;
};

struct map_bytes {
    struct map_bytes_slot *slots; /* a free slot has the value MAP_ABSENT */
    uint64_t seed;                /* seed of the hash, drawn when the first slots are allocated */
    uint32_t capacity;            /* a power of two, or 0 */
    uint32_t count;
};

struct map_u64_slot {
    uint64_t key;
    uint32_t value;
};

struct map_u64 {
    struct map_u64_slot *slots;
    uint64_t factor; /* odd factor of the hash, drawn when the first slots are allocated */
    uint32_t capacity;
    uint32_t count;
};

/* expected_count: space is allocated for so many keys; the map grows beyond that by itself. */
void map_bytes_init(struct map_bytes *map, uint32_t expected_count);
void map_bytes_fini(struct map_bytes *map);
/* The value of key; MAP_ABSENT when there is no such key. */
uint32_t map_bytes_find(const struct map_bytes *map, struct span key);
/* Adds (key, value) if key is absent. Returns the value of key in the map. value must not be
 * MAP_ABSENT. */
uint32_t map_bytes_add(struct map_bytes *map, struct span key, uint32_t value);

void map_u64_init(struct map_u64 *map, uint32_t expected_count);
void map_u64_fini(struct map_u64 *map);
uint32_t map_u64_find(const struct map_u64 *map, uint64_t key);
uint32_t map_u64_add(struct map_u64 *map, uint64_t key, uint32_t value);

#endif

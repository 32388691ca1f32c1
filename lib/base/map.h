/*
 * map: a hash map from bytes or from a 64-bit number to a 32-bit number, for interning and look-up.
 *
 * Open addressing with linear probing, XXH3 for bytes; keys that are bytes are borrowed and must
 * live as long as the map. There is no removal. A look-up costs one hash and about 1.5 probes,
 * whatever the keys: each map hashes with a random number of its own, so that nobody can choose
 * keys that meet in one place. A map that is all zeros is empty and ready for use.
 * Threads: one writer, or any number of readers.
 */
#ifndef LIB_BASE_MAP_H
#define LIB_BASE_MAP_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define MAP_ABSENT UINT32_MAX

struct map_bytes_slot {
    struct span key;
    uint32_t hash;
    uint32_t value;
};

struct map_bytes {
    struct map_bytes_slot *slots; /* value MAP_ABSENT marks a free slot */
    uint64_t seed;                /* of the hash; drawn with the first slots */
    uint32_t capacity;            /* a power of two, or 0 */
    uint32_t count;
};

struct map_u64_slot {
    uint64_t key;
    uint32_t value;
};

struct map_u64 {
    struct map_u64_slot *slots;
    uint64_t factor; /* of the hash, odd; drawn with the first slots */
    uint32_t capacity;
    uint32_t count;
};

void map_bytes_init(struct map_bytes *map, uint32_t expected_count);
void map_bytes_fini(struct map_bytes *map);
/* MAP_ABSENT when there is no such key. */
uint32_t map_bytes_find(const struct map_bytes *map, struct span key);
/* The value of key, after adding (key, value) if it was absent; value must not be MAP_ABSENT. */
uint32_t map_bytes_add(struct map_bytes *map, struct span key, uint32_t value);

void map_u64_init(struct map_u64 *map, uint32_t expected_count);
void map_u64_fini(struct map_u64 *map);
uint32_t map_u64_find(const struct map_u64 *map, uint64_t key);
uint32_t map_u64_add(struct map_u64 *map, uint64_t key, uint32_t value);

#endif

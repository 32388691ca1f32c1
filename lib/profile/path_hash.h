/*
 * path_hash: a name for a node of a call tree that does not depend on the order of tables and stays
 * the same in another upload of the same program: a hash of the names from the root (left out) down
 * to it. web/src/model/path.ts computes the same for links.
 *
 * A name's hash is two 32-bit FNV-1a values over its bytes, from the bases 0x811c9dc5 and
 * 0x9747b28c. Of a name like "0x4f2a10 main.run", which has frames grouped by address, the address
 * alone counts: the function's name may become known later, and the link stays. A node's is, per
 * half, murmur3's fmix32(parent ^ (rotl(name, 5) + 0x9e3779b9)); the root's is 0. Written as 16
 * hexadecimal digits, high half first. Threads: any.
 */
#ifndef LIB_PROFILE_PATH_HASH_H
#define LIB_PROFILE_PATH_HASH_H

#include "lib/base/buf.h"

#include <stdint.h>

struct path_hash {
    uint32_t high;
    uint32_t low;
};

/* How many of the name's bytes count. */
static inline size_t path_hash_bytes(struct span name)
{
    size_t i = 2;
    if (name.size < 4 || name.data[0] != '0' || name.data[1] != 'x')
        return name.size;
    while (i < name.size && ((name.data[i] >= '0' && name.data[i] <= '9') ||
                             (name.data[i] >= 'a' && name.data[i] <= 'f')))
        i++;
    return i > 2 && i < name.size && name.data[i] == ' ' ? i : name.size;
}

static inline struct path_hash path_hash_name(struct span name)
{
    struct path_hash hash = {.high = UINT32_C(0x811c9dc5), .low = UINT32_C(0x9747b28c)};
    for (size_t i = 0, size = path_hash_bytes(name); i < size; i++) {
        hash.high = (hash.high ^ name.data[i]) * UINT32_C(0x01000193);
        hash.low = (hash.low ^ name.data[i]) * UINT32_C(0x01000193);
    }
    return hash;
}

static inline uint32_t path_hash_mix(uint32_t parent, uint32_t name)
{
    uint32_t hash = parent ^ ((name << 5 | name >> 27) + UINT32_C(0x9e3779b9));
    hash = (hash ^ hash >> 16) * UINT32_C(0x85ebca6b);
    hash = (hash ^ hash >> 13) * UINT32_C(0xc2b2ae35);
    return hash ^ hash >> 16;
}

/* Of a child, from its parent's path and the hash of its own name. */
static inline struct path_hash path_hash_child(struct path_hash parent, struct path_hash name)
{
    return (struct path_hash){.high = path_hash_mix(parent.high, name.high),
                              .low = path_hash_mix(parent.low, name.low)};
}

static inline uint64_t path_hash_u64(struct path_hash hash)
{
    return (uint64_t)hash.high << 32 | hash.low;
}

#endif

#include "store/block/stack_hashes.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "store/block/dictionary.h"

/* Inline hashing of keys of a constant size takes a third of the time. */
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_CAPACITY = 1024, MAPPING_ROUNDING = 4096, PRIME_BITS = 61, KEY_BITS = 60 };
#define PRIME ((UINT64_C(1) << PRIME_BITS) - 1)

static struct stack_hash hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
    const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size, seed);
    return (struct stack_hash){.low = hash.low64, .high = hash.high64};
}

/* ---- frames ---- */

struct frames {
    const struct profile *tables;
    uint64_t seed;
    struct stack_hash *strings;
    struct stack_hash *mappings;
    struct stack_hash *names; /* of the files of mappings */
    struct stack_hash *functions;
};

static void hash_strings(struct frames *frames)
{
    for (uint32_t i = 0; i < frames->tables->string_count; i++) {
        const struct span text = frames->tables->strings[i];
        frames->strings[i] = hash_bytes(text.data, text.size, frames->seed);
    }
}

/* A file is identified as in lib/profile/merge.h: size in whole pages, offset, build id or else
 * name. */
static void hash_mappings(struct frames *frames)
{
    for (uint32_t i = 0; i < frames->tables->mapping_count; i++) {
        const struct profile_mapping *mapping = &frames->tables->mappings[i];
        const uint64_t size = mapping->limit - mapping->start + MAPPING_ROUNDING - 1;
        const struct stack_hash name =
            frames->strings[mapping->build_id ? mapping->build_id : mapping->filename];
        const uint64_t key[] = {size - size % MAPPING_ROUNDING, mapping->offset, name.low,
                                name.high};
        frames->mappings[i] = hash_bytes(key, sizeof(key), frames->seed);
        frames->names[i] =
            frames->strings[mapping->filename ? mapping->filename : mapping->build_id];
    }
}

static void hash_functions(struct frames *frames)
{
    for (uint32_t i = 0; i < frames->tables->function_count; i++) {
        const struct profile_function *function = &frames->tables->functions[i];
        const struct stack_hash name = frames->strings[function->name];
        const struct stack_hash system_name = frames->strings[function->system_name];
        const struct stack_hash filename = frames->strings[function->filename];
        const uint64_t key[] = {name.low,
                                name.high,
                                system_name.low,
                                system_name.high,
                                filename.low,
                                filename.high,
                                (uint64_t)function->start_line};
        frames->functions[i] = hash_bytes(key, sizeof(key), frames->seed);
    }
}

enum { LINE_WORDS = 4 };

static void describe_line(const struct frames *frames, const struct profile_line *line,
                          uint64_t words[LINE_WORDS])
{
    static const struct stack_hash none = {.low = 1, .high = 1};
    const struct stack_hash function =
        line->function == PROFILE_NONE ? none : frames->functions[line->function];
    words[0] = function.low;
    words[1] = function.high;
    words[2] = (uint64_t)line->line;
    words[3] = (uint64_t)line->column;
}

static bool has_names(const struct frames *frames, const struct profile_location *location)
{
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct profile_line *line = &frames->tables->lines[location->first_line + i];
        if (line->function == PROFILE_NONE || !frames->tables->functions[line->function].name)
            return false;
    }
    return location->line_count > 0;
}

/* Nearly all locations have one line, so it is part of the first key. */
static struct stack_hash hash_location(const struct frames *frames,
                                       const struct profile_location *location)
{
    static const struct stack_hash none = {.low = 1, .high = 1};
    const struct profile_line *lines = frames->tables->lines + location->first_line;
    const struct stack_hash mapping = location->mapping == PROFILE_NONE ? none
                                      : has_names(frames, location)
                                          ? frames->names[location->mapping]
                                          : frames->mappings[location->mapping];
    uint64_t begin[LINE_WORDS + LINE_WORDS] = {location->address, mapping.low, mapping.high,
                                               (uint64_t)location->line_count << 1 |
                                                   location->is_folded};
    if (location->line_count)
        describe_line(frames, &lines[0], begin + LINE_WORDS);
    struct stack_hash hash = hash_bytes(begin, sizeof(begin), frames->seed);
    for (uint32_t i = 1; i < location->line_count; i++) {
        uint64_t next[LINE_WORDS + 2] = {hash.low, hash.high};
        describe_line(frames, &lines[i], next + 2);
        hash = hash_bytes(next, sizeof(next), frames->seed);
    }
    return hash;
}

/* ---- stacks ---- */

static uint64_t modulo_prime(uint64_t number)
{
    const uint64_t folded = (number & PRIME) + (number >> PRIME_BITS);
    return folded >= PRIME ? folded - PRIME : folded;
}

static struct stack_hash modulo_primes(struct stack_hash hash)
{
    return (struct stack_hash){.low = modulo_prime(hash.low), .high = modulo_prime(hash.high)};
}

/* caller * key + frame modulo 2^61 - 1, reduced below 2^62 only: with a caller below 2^62, a key
 * below 2^60 and a frame below 2^61, the folded sum is below 2^61 + 2^61. Each node depends on the
 * one before, so every instruction counts; only the hash at the end of a stack is fully reduced. */
static inline uint64_t roll(uint64_t caller, uint64_t key, uint64_t frame)
{
    const unsigned __int128 product = (unsigned __int128)caller * key + frame;
    return ((uint64_t)product & PRIME) + (uint64_t)(product >> PRIME_BITS);
}

static const struct stack_hash *hash_stacks(struct arena *arena, struct arena *scratch,
                                            const struct stacks *stacks,
                                            const struct stack_hash *frames, uint64_t seed)
{
    static const char purpose[] = "how stacks are rolled up";
    struct stack_hash key = hash_bytes(purpose, sizeof(purpose), seed);
    key.low &= (UINT64_C(1) << KEY_BITS) - 1;
    key.high &= (UINT64_C(1) << KEY_BITS) - 1;
    struct stack_hash *hashes = arena_new_raw(arena, struct stack_hash, stacks->stack_count);
    /* In preorder, the path to a node is that of the node before, up to its depth. */
    struct stack_hash *way =
        arena_new(scratch, struct stack_hash, stacks_deepest(stacks) + (size_t)1);
    hashes[0] = way[0] = (struct stack_hash){.low = 1, .high = 1};
    uint32_t chain = 0, node = STACKS_ROOT + 1, depth = 1;
    uint32_t chain_end = stacks_chain_end(stacks, chain);
    for (uint32_t i = 1; i < stacks->stack_count; i++) {
        struct stack_hash hash = way[depth - 1];
        for (; node <= stacks->ends[i].node; node++, depth++) {
            if (node == chain_end) {
                depth = stacks->chains[++chain].depth;
                chain_end = stacks_chain_end(stacks, chain);
                hash = way[depth - 1];
            }
            const struct stack_hash frame = frames[stacks->frames[node]];
            hash.low = roll(hash.low, key.low, frame.low);
            hash.high = roll(hash.high, key.high, frame.high);
            way[depth] = hash;
        }
        hashes[i] = modulo_primes(hash);
    }
    return hashes;
}

void stack_hashes_create(struct arena *arena, const struct dictionary *dictionary, uint64_t seed,
                         struct stack_hashes *ret_hashes)
{
    arena_auto scratch = arena_create();
    const struct profile *tables = dictionary->tables;
    struct frames frames = {
        .tables = tables,
        .seed = seed,
        .strings = arena_new_raw(scratch, struct stack_hash, tables->string_count),
        .mappings = arena_new_raw(scratch, struct stack_hash, tables->mapping_count),
        .names = arena_new_raw(scratch, struct stack_hash, tables->mapping_count),
        .functions = arena_new_raw(scratch, struct stack_hash, tables->function_count),
    };
    hash_strings(&frames);
    hash_mappings(&frames);
    hash_functions(&frames);
    struct stack_hash *locations = arena_new_raw(arena, struct stack_hash, tables->location_count);
    for (uint32_t i = 0; i < tables->location_count; i++)
        locations[i] = modulo_primes(hash_location(&frames, &tables->locations[i]));
    ret_hashes->frames = locations;
    ret_hashes->stacks = hash_stacks(arena, scratch, &dictionary->stacks, locations, seed);
}

/* ---- numbers of hashes ---- */

void stack_hash_set_init(struct stack_hash_set *set)
{
    set->count = 0;
    set->capacity = FIRST_CAPACITY;
    set->hashes = mem_new(struct stack_hash, set->capacity);
    set->slots = mem_new(uint32_t, set->capacity * (size_t)2);
}

void stack_hash_set_fini(struct stack_hash_set *set)
{
    mem_free(set->hashes);
    mem_free(set->slots);
}

static uint32_t *find_slot(const struct stack_hash_set *set, struct stack_hash hash)
{
    const uint32_t mask = set->capacity * 2 - 1;
    uint32_t at = (uint32_t)hash.low & mask;
    while (set->slots[at] && !stack_hash_equal(set->hashes[set->slots[at] - 1], hash))
        at = (at + 1) & mask;
    return &set->slots[at];
}

static void grow_set(struct stack_hash_set *set)
{
    set->capacity *= 2;
    set->hashes = mem_resize(set->hashes, set->capacity, sizeof(*set->hashes));
    mem_free(set->slots);
    set->slots = mem_new(uint32_t, set->capacity * (size_t)2);
    for (uint32_t i = 0; i < set->count; i++)
        *find_slot(set, set->hashes[i]) = i + 1;
}

uint32_t stack_hash_set_add(struct stack_hash_set *set, struct stack_hash hash)
{
    uint32_t *slot = find_slot(set, hash);
    if (*slot)
        return *slot - 1;
    if (set->count == set->capacity) {
        grow_set(set);
        slot = find_slot(set, hash);
    }
    set->hashes[set->count++] = hash;
    *slot = set->count;
    return set->count - 1;
}

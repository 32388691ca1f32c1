/*
 * code_cache: the known functions of one process's scripts, by address.
 *
 * Entries have the caller's type (cpython_code.h, ruby_code.h); texts and tables that belong to
 * them are allocated from `into`. Limits: count, bytes, and a share of the budget of all processes
 * (code_budget.h). A function that exceeds them makes the cache forget all; if there is still no
 * room, it goes to shared memory until the next such function. Threads: one.
 */
#ifndef AGENT_INTERPRETER_CODE_CACHE_H
#define AGENT_INTERPRETER_CODE_CACHE_H

#include "agent/interpreter/code_budget.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

struct code_cache {
    struct code_share share;
    uint32_t entry_bytes;
    uint32_t most_bytes; /* that one function's texts and tables may take */
    struct arena *arena;
    struct arena *into;        /* of the entry that is being read */
    struct map_u64 by_address; /* index in entries */
    uint8_t *entries;
    uint32_t count;
    uint32_t capacity;
};

/* share, which has nothing yet, is copied; not to be moved afterwards. */
void code_cache_init(struct code_cache *cache, const struct code_share *share, size_t entry_bytes,
                     uint32_t most_bytes);
void code_cache_fini(struct code_cache *cache);

/* NULL: not known. Good until the next call of code_cache_put. */
void *code_cache_find(const struct code_cache *cache, uint64_t address);
/* Where to write the entry of that address, be it known or not; sets `into`. Good until the next
 * call. What it then has is counted by code_cache_count. */
void *code_cache_put(struct code_cache *cache, uint64_t address);
void code_cache_count(struct code_cache *cache);

#endif

/*
 * code_cache: the known functions of one process's scripts, by address.
 *
 * Entries have the caller's type (cpython_code.h, ruby_code.h); texts and tables that belong to
 * them are allocated from `into`. Limits: count, bytes, and a quota of the budget of all processes
 * (code_budget.h). If a function exceeds them, the cache first forgets all its entries. If there is
 * still no space, the function is put into the budget's shared memory, which the next function
 * without space overwrites. Threads: one.
 */
#ifndef AGENT_INTERPRETER_CODE_CACHE_H
#define AGENT_INTERPRETER_CODE_CACHE_H

#include "agent/interpreter/code_budget.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"

struct code_cache {
    struct code_quota quota;
    uint32_t entry_bytes;
    uint32_t entry_max_bytes; /* the most that the texts and tables of one function take */
    struct arena *arena;
    struct arena *into;        /* for the texts and tables of the entry that is being read */
    struct map_u64 by_address; /* from the address of a function to its index in entries */
    uint8_t *entries;
    uint32_t count;
    uint32_t capacity;
};

/* quota is copied and must have 0 bytes. entry_bytes: size of the caller's type of an entry. The
 * cache must not be moved afterwards. */
void code_cache_init(struct code_cache *cache, const struct code_quota *quota, size_t entry_bytes,
                     uint32_t entry_max_bytes);
void code_cache_fini(struct code_cache *cache);

/* NULL: the function is not known. Valid until the next call of code_cache_put. */
void *code_cache_find(const struct code_cache *cache, uint64_t address);
/* Returns the memory for the entry of that address, whether or not the address is known, and sets
 * `into`. The caller overwrites the whole entry and then calls code_cache_count. Valid until the
 * next call. */
void *code_cache_put(struct code_cache *cache, uint64_t address);
/* Counts the memory of the cache against the quota. */
void code_cache_count(struct code_cache *cache);

#endif

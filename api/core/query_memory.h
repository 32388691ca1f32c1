/*
 * query_memory: what all questions to the store (store/store.h) hold of memory together.
 *
 * Each may have as much as its tenant's limit says; together they have one budget
 * (--max-query-memory). The first bytes of each are free (QUERY_MEMORY_LIGHT): what is small is
 * never kept waiting. Past them it takes places of the budget as it grows. One that finds no room
 * lets go of all that it has, waits for a place of twice what it had needed, taken whole, and
 * begins again: so nobody waits while holding memory, and those inside always finish. Only a
 * request that still needs an answer of before (a diff's other side) does not wait at all: it takes
 * what is free, and is refused for good where both together need more than the budget.
 *
 * The tenant that holds least is next, and while it waits those that hold more do not grow.
 * Threads: any; a place belongs to one.
 */
#ifndef API_CORE_QUERY_MEMORY_H
#define API_CORE_QUERY_MEMORY_H

#include "lib/base/err.h"

#include <stdint.h>

struct arena;
struct query_memory;
struct query_memory_slot;
struct store_query;

enum {
    QUERY_MEMORY_LIGHT = 32 << 20,
    QUERY_MEMORY_WAIT_S = 10, /* each who waits holds a worker thread */
    QUERY_MEMORY_RETRY_S = 5
};

/* max_bytes 0: a quarter of what the machine, or the control group this process is in, has of
 * memory, but at least 256 MiB and at most 4 GiB. */
struct query_memory *query_memory_create(uint64_t max_bytes);
/* NULL is a no-op. Nobody has a place any more. */
void query_memory_destroy(struct query_memory *memory);

/* The budget, and what is taken of it. */
uint64_t query_memory_max_bytes(const struct query_memory *memory);
uint64_t query_memory_used_bytes(struct query_memory *memory);
int query_memory_waiting_count(struct query_memory *memory);

/*
 * Sets query->memory: from now on the question, whose tenant, patience and limits are set, goes by
 * the budget. Its place is one of *places, of the same request; in arena. What the store then
 * gives: ERR_BUSY (no room for too long), ERR_LIMIT (more than the whole budget).
 */
void query_memory_enter(struct query_memory *memory, struct arena *arena,
                        struct query_memory_slot **places, struct store_query *query);
/* Their answers are gone. */
void query_memory_leave(struct query_memory_slot **places);

#endif

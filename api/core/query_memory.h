/*
 * query_memory: one memory budget for all queries of the store (store/store.h).
 *
 * Each query may use as much as its tenant's limit; together they have one budget
 * (--max-query-memory). The first bytes of each are free (QUERY_MEMORY_LIGHT), so a small query
 * never waits. Beyond them a query takes bytes of the budget as it grows. A query that does not fit
 * releases all its memory and waits until it can take twice the bytes that it had needed, in one
 * step; then it starts again. So no query waits while it holds memory, and queries that hold memory
 * always finish. There is one exception: a request that still needs the result of an earlier query
 * (the other side of a diff) does not wait. Its query takes the bytes that are free, and is refused
 * with ERR_LIMIT (a retry cannot help) if both sides together need more than the budget.
 *
 * The next query to get memory is the one whose tenant holds the fewest bytes. While it waits,
 * queries of tenants that hold more do not grow. Threads: any; a slot belongs to one thread.
 */
#ifndef API_CORE_QUERY_MEMORY_H
#define API_CORE_QUERY_MEMORY_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct arena;
struct query_memory;
struct query_memory_slot;
struct store_query;

enum {
    QUERY_MEMORY_LIGHT = 32 << 20, /* bytes that each query may use outside of the budget */
    QUERY_MEMORY_WAIT_S = 10,      /* short, because each waiting query holds a worker thread */
    QUERY_MEMORY_RETRY_S = 5       /* for Retry-After when the wait was too long */
};

/* max_bytes 0: depends on the memory of the host (memory_info.h). */
struct query_memory *query_memory_create(uint64_t max_bytes);
/* NULL is a no-op. No slot may be in use any more. */
void query_memory_destroy(struct query_memory *memory);

/* The budget, how many of its bytes are taken, and how many queries wait for some. */
uint64_t query_memory_max_bytes(const struct query_memory *memory);
uint64_t query_memory_used_bytes(struct query_memory *memory);
int query_memory_waiting_count(struct query_memory *memory);

/*
 * Sets query->memory: from now on the query, whose tenant, wait limit and limits are set, is
 * subject to the budget. Its slot is added to *slots, the slots of the same request; it lives in
 * arena. The store then reports: ERR_BUSY (it waited too long), ERR_LIMIT (more than the whole
 * budget), ERR_CANCELLED (the client has left while it waited).
 */
void query_memory_enter(struct query_memory *memory, struct arena *arena,
                        struct query_memory_slot **slots, struct store_query *query);
/* Returns the memory of all slots and empties the list. The results of the queries must have been
 * freed. */
void query_memory_leave(struct query_memory_slot **slots);

#endif

/*
 * stack_filter: which stacks of a block a filter keeps (focus and ignore of
 * lib/profile/report/filter.h).
 *
 * A stack is kept if each focus matches one of its frames and no ignore matches any of them. A
 * stack without frames is not kept. hide, show and labels do not matter here. Missing names of
 * frames are looked up first (store/query/frame_resolution.h). A frame that still has no name
 * matches only by its binary and address (lib/profile/report/filter.h).
 *
 * The kept stacks of a block depend only on names, not on the window, so they are cached for later
 * queries, whose windows have moved. Threads: any. Private to store/.
 */
#ifndef STORE_QUERY_STACK_FILTER_H
#define STORE_QUERY_STACK_FILTER_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct block;
struct dictionary;
struct filter;
struct flight_entry;
struct frame_resolver;
struct names_memory;
struct wait_limit;
struct store_symbolization;

/* Sets *ret_keeps, a bool per stack in arena, and adds to names. Errors: ERR_INVALID (an
 * expression is too costly), what frame_resolution_resolve returns. */
enum err_code stack_filter_apply(const struct filter *filter, const struct frame_resolver *resolver,
                                 int64_t tenant_id, const struct names_memory *memory,
                                 const struct dictionary *dictionary, struct arena *arena,
                                 struct store_symbolization *names, const bool **ret_keeps,
                                 struct err *err) MUST_USE;

/* The cache of kept stacks. */
struct stack_filters;

struct stack_filters *stack_filters_create(size_t max_bytes);
void stack_filters_destroy(struct stack_filters *filters); /* NULL is a no-op */
size_t stack_filters_bytes(struct stack_filters *filters);

struct stack_filter_query {
    const struct filter *filter;
    const struct frame_resolver *resolver;
    int64_t tenant_id;
    const struct names_memory *memory;   /* NULL: the names have no limit */
    const char *rules;                   /* from stack_filter_key */
    const struct wait_limit *wait_limit; /* of this query; NULL: none */
};
/* The filter's rules as a cache key, in arena. */
const char *stack_filter_key(struct arena *arena, const struct filter *filter);

/*
 * As stack_filter_apply, cached. *ret_keeps, per stack of the block, is valid until the caller
 * returns *ret_entry with flight_cache_unref. names, whose generation is that of the query, is
 * added to. Errors: ERR_INVALID (an expression is too costly), what frame_resolution_resolve
 * returns, ERR_BUSY (another query takes too long to compute it), ERR_CANCELLED (wait_limit).
 */
enum err_code stack_filters_ref(struct stack_filters *filters,
                                const struct stack_filter_query *query, const struct block *block,
                                struct store_symbolization *names, struct flight_entry **ret_entry,
                                const bool **ret_keeps, struct err *err) MUST_USE;

#endif

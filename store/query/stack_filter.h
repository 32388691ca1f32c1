/*
 * stack_filter: which stacks of a block a filter keeps (lib/profile/report/filter.h: focus and
 * ignore).
 *
 * A stack is kept when each focus matches some frame of it and no ignore does; one without frames
 * never is. hide, show and labels say nothing here. Names that frames do not have are asked for
 * first (store/query/frame_resolution.h); a frame that stays without one is found by its binary's
 * name, and no ignore leaves it out for what it may be called.
 *
 * What a filter keeps of a block is the same for as long as names are: it is kept while there is
 * room, for whoever asks again as windows move on. Threads: any. Private to the room.
 */
#ifndef STORE_QUERY_STACK_FILTER_H
#define STORE_QUERY_STACK_FILTER_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct block;
struct dictionary;
struct filter;
struct flight_entry;
struct frame_resolver;
struct wait_limit;
struct store_symbolization;

/* *ret_keeps: per stack, in arena. names is added to. Handles: ERR_INVALID (an expression is too
 * costly), what the resolver gives. */
enum err_code stack_filter_apply(const struct filter *filter, const struct frame_resolver *resolver,
                                 int64_t tenant_id, const struct dictionary *dictionary,
                                 struct arena *arena, struct store_symbolization *names,
                                 const bool **ret_keeps, struct err *err) MUST_USE;

/* What filters keep of blocks. */
struct stack_filters;

struct stack_filters *stack_filters_create(size_t max_bytes);
void stack_filters_destroy(struct stack_filters *filters); /* NULL is a no-op */
size_t stack_filters_bytes(struct stack_filters *filters);

struct stack_filter_query {
    const struct filter *filter;
    const struct frame_resolver *resolver;
    int64_t tenant_id;
    const char *rules;                   /* of stack_filter_key: the filter's */
    const struct wait_limit *wait_limit; /* of whoever asks; NULL: without end */
};
/* The filter's rules as a word, in arena. */
const char *stack_filter_key(struct arena *arena, const struct filter *filter);

/*
 * As stack_filter_apply. *ret_keeps: per stack of the block, until the caller gives *ret_entry back
 * with flight_cache_unref. names, whose generation is that of the question, is added to. Handles:
 * ERR_INVALID (an expression is too costly), what the resolver gives, ERR_BUSY (others take too
 * long to find it out), ERR_CANCELLED (the question's patience is over).
 */
enum err_code stack_filters_ref(struct stack_filters *filters,
                                const struct stack_filter_query *query, const struct block *block,
                                struct store_symbolization *names, struct flight_entry **ret_entry,
                                const bool **ret_keeps, struct err *err) MUST_USE;

#endif

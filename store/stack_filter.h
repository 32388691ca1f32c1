/*
 * stack_filter: which stacks of a block a filter keeps (lib/profile/filter.h: focus and ignore).
 *
 * A stack is kept when each focus matches some frame of it and no ignore does; one without frames
 * never is. hide, show and labels say nothing here. Names that frames do not have are asked for
 * first (store/frame_names.h); a frame that stays without one is found by its binary's name, and no
 * ignore leaves it out for what it may be called. Private to the room.
 */
#ifndef STORE_STACK_FILTER_H
#define STORE_STACK_FILTER_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct dictionary;
struct filter;
struct frame_resolver;
struct store_names;

/* *ret_keeps: per stack, in arena. names is added to. Handles: ERR_INVALID (an expression is too
 * costly), what the resolver gives. */
enum err_code stack_filter_apply(const struct filter *filter, const struct frame_resolver *resolver,
                                 int64_t tenant_id, const struct dictionary *dictionary,
                                 struct arena *arena, struct store_names *names,
                                 const bool **ret_keeps, struct err *err) MUST_USE;

#endif

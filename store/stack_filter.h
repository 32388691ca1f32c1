/*
 * stack_filter: which stacks of a block a filter keeps (lib/profile/filter.h: focus and ignore).
 *
 * A stack is kept when each focus matches some frame of it and no ignore does; one without frames
 * never is. hide, show and labels say nothing here. Private to the room.
 */
#ifndef STORE_STACK_FILTER_H
#define STORE_STACK_FILTER_H

#include "lib/base/err.h"

#include <stdbool.h>

struct arena;
struct dictionary;
struct filter;

/* *ret_keeps: per stack, in arena. Handles: ERR_INVALID (an expression is too costly). */
enum err_code stack_filter_apply(const struct filter *filter, const struct dictionary *dictionary,
                                 struct arena *arena, const bool **ret_keeps,
                                 struct err *err) MUST_USE;

#endif

/*
 * stack_sort: the stacks of a view in lexicographic order of their frames, root first.
 *
 * Equal stacks come to stand side by side and a stack behind those that it extends, so that a tree
 * can be built from left to right without any look-up. Multikey quicksort (Bentley and Sedgewick,
 * "Fast Algorithms for Sorting and Searching Strings", 1997): each frame is looked at about once
 * per partition it takes part in. Iterative, and the pivots are random, so that no input makes it
 * deep or slow; the result does not depend on them.
 */
#ifndef LIB_PROFILE_REPORT_STACK_SORT_H
#define LIB_PROFILE_REPORT_STACK_SORT_H

#include "lib/profile/report/view.h"

/* view->stack_count indexes of stacks, in arena. Handles: ERR_TOO_LARGE (the view's deadline). */
enum err_code stack_sort(struct arena *arena, const struct view *view, uint32_t **ret_order,
                         struct err *err) MUST_USE;

#endif

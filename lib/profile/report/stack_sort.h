/*
 * stack_sort: sorts the stacks of a view lexicographically by their frames, root first.
 *
 * Frames are compared by their indexes in the view, not by name. Equal stacks become adjacent, and
 * a stack follows those that it extends, so that a tree can be built from left to right without
 * lookups. Multikey quicksort (Bentley and Sedgewick, "Fast
 * Algorithms for Sorting and Searching Strings", 1997): each frame is examined about once per
 * partition that contains its stack. The sort is iterative and its pivots are random, so no input
 * makes it deep or slow; the result does not depend on the pivots.
 */
#ifndef LIB_PROFILE_REPORT_STACK_SORT_H
#define LIB_PROFILE_REPORT_STACK_SORT_H

#include "lib/profile/report/view.h"

/* Returns view->stack_count indexes of stacks, in arena. Errors: ERR_TOO_LARGE (the view's
 * deadline). */
enum err_code stack_sort(struct arena *arena, const struct view *view, uint32_t **ret_order,
                         struct err *err) MUST_USE;

#endif

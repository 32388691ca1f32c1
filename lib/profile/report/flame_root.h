/*
 * flame_root: finds the path to one node of a view's tree before the tree is built. Private to
 * flame.c.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_ROOT_H
#define LIB_PROFILE_REPORT_FLAME_ROOT_H

#include "lib/profile/report/view.h"

/* Frames from below the root down to the node; borrowed from the view. */
struct flame_root {
    const uint32_t *frames;
    uint64_t depth;
};

/*
 * Finds the node whose path has this hash (path_hash.h), or had it before its addresses got names
 * (raw_path.h). order: the stacks as stack_sort sorts them; max_depth: the number of frames of the
 * deepest one. Errors: ERR_NOT_FOUND; ERR_TOO_LARGE (the view's deadline).
 */
enum err_code flame_root_find(const struct view *view, const uint32_t *order, uint64_t max_depth,
                              uint64_t hash, struct flame_root *ret_root, struct err *err) MUST_USE;

/* The current hash of the node's path. */
uint64_t flame_root_path(const struct view *view, const struct flame_root *root);

#endif

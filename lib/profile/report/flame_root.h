/*
 * flame_root: the way to one node of a view's tree, before there is a tree; for flame.c alone.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_ROOT_H
#define LIB_PROFILE_REPORT_FLAME_ROOT_H

#include "lib/profile/report/view.h"

/* Frames from the root, which is left out, down to the node; borrowed from the view. */
struct flame_root {
    const uint32_t *frames;
    uint64_t depth;
};

/*
 * The node whose path has that hash (path_hash.h), or had before addresses got names (raw_path.h);
 * order is the stacks sorted, max_depth that of the deepest. Handles: ERR_NOT_FOUND; ERR_TOO_LARGE
 * (the view's deadline).
 */
enum err_code flame_root_find(const struct view *view, const uint32_t *order, uint64_t max_depth,
                              uint64_t hash, struct flame_root *ret_root, struct err *err) MUST_USE;

/* The hash that the node's path has now. */
uint64_t flame_root_path(const struct view *view, const struct flame_root *root);

#endif

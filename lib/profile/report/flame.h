/*
 * flame: the call tree of a view as flat arrays in preorder.
 *
 * Node 0 is the root. A child stands behind its parent and before its parent's next sibling;
 * siblings are ordered by descending cum (in a diff by the larger of both sides), equal ones by
 * frame. Below the root, equal stacks share their nodes; recursion nests.
 *
 * A tree beyond max_nodes is cut: the smallest subtrees of a node become one child whose frame has
 * FRAME_OTHER; flame->cut says how much that is, cut_node and cut_hidden per child. Nothing is
 * dropped silently: values add up as before.
 *
 * Cost for 1M nodes out of 69k stacks of depth 22: see tests/bench/bench_flame.c. Memory is bounded
 * by the view's entries and max_nodes. No recursion: stacks may be as deep as they like.
 * Threads: an object belongs to one thread while it is built, then it is read only.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_H
#define LIB_PROFILE_REPORT_FLAME_H

#include "lib/profile/report/view.h"

enum { FLAME_NODES_DEFAULT = 1000000, FLAME_NODES_MIN = 100 };

struct flame {
    const struct view *view; /* value type, grouping, totals */
    const struct frame *frames;
    uint32_t frame_count; /* one more than the view's when something was cut */
    uint32_t node_count;
    const uint32_t *node_frame;
    const uint32_t *node_parent; /* index; the root's own is 0 */
    const int64_t *node_self;    /* side B */
    const int64_t *node_cum;
    const int64_t *base_self; /* side A; NULL unless view->is_diff */
    const int64_t *base_cum;
    /* Side B before view->scale, for whom whole numbers are too coarse; NULL where it is 1. */
    const int64_t *unscaled_self;

    uint64_t
        root_path; /* of flame_create_below: the hash of that node's path now; 0: all is here */
    uint64_t cut_hidden_count;  /* nodes that are merged into others; 0: nothing was cut */
    int64_t cut_value;          /* of both sides, as absolute values */
    uint32_t cut_count;         /* nodes with FRAME_OTHER */
    const uint32_t *cut_node;   /* which, ascending */
    const uint32_t *cut_hidden; /* how many nodes each one stands for */
};

/* max_nodes 0 is FLAME_NODES_DEFAULT; less than FLAME_NODES_MIN counts as that. In arena. Handles:
 * ERR_TOO_LARGE (the view's deadline; a stack that is too deep). */
enum err_code flame_create(struct arena *arena, const struct view *view, uint32_t max_nodes,
                           const struct flame **ret_flame, struct err *err) MUST_USE;

/*
 * As flame_create, with all of max_nodes for what is below one node, named by its path's hash
 * (path_hash.h): what stands beside the way to it is in one "other" for each node of the way,
 * however large. So values are the same as in the whole tree. Handles also: ERR_NOT_FOUND (no node
 * has that path).
 */
enum err_code flame_create_below(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                 uint64_t path, const struct flame **ret_flame,
                                 struct err *err) MUST_USE;

#endif

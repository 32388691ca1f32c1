/*
 * flame: the call tree of a view as flat arrays in preorder.
 *
 * Node 0 is the root. A child follows its parent and precedes its parent's next sibling. Siblings
 * are ordered by descending cum (in a diff by the larger of both sides), equal ones by frame. Equal
 * stacks share their nodes; recursive calls nest.
 *
 * A tree with more than max_nodes is cut: the smallest subtrees of a node are merged into one child
 * whose frame has FRAME_OTHER, the "other" node. Values still add up as before. cut_hidden_count is
 * the number of all merged nodes and cut_value their value; cut_node and cut_hidden list the
 * "other" nodes.
 *
 * tests/bench/bench_flame.c measures the cost for 1M nodes from 69k stacks of depth 22. Memory is
 * bounded by the view's entries and max_nodes. No function is recursive, so stacks may have any
 * depth. Threads: an object belongs to one thread while it is built; afterwards it is read-only.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_H
#define LIB_PROFILE_REPORT_FLAME_H

#include "lib/profile/report/view.h"

enum { FLAME_NODES_DEFAULT = 1000000, FLAME_NODES_MIN = 100 };

struct flame {
    const struct view *view; /* value type, grouping, totals */
    const struct frame *frames;
    uint32_t frame_count; /* the view's, plus one if the tree was cut */
    uint32_t node_count;
    const uint32_t *node_frame;
    const uint32_t *node_parent; /* index; the root's own is 0 */
    const int64_t *node_self;    /* side B */
    const int64_t *node_cum;
    const int64_t *base_self; /* side A; NULL unless view->is_diff */
    const int64_t *base_cum;
    /* Side B before view->scale was applied, for callers that need more precision; NULL if the
     * scale is 1. */
    const int64_t *unscaled_self;

    /* The current hash of the path of the node that flame_create_below was called for; 0: the whole
     * tree. */
    uint64_t root_path;
    uint64_t cut_hidden_count;  /* nodes that were merged into "other" nodes; 0: none */
    int64_t cut_value;          /* the sum of the magnitudes of the "other" nodes, of both sides */
    uint32_t cut_count;         /* nodes with FRAME_OTHER */
    const uint32_t *cut_node;   /* their indexes, ascending */
    const uint32_t *cut_hidden; /* number of nodes merged into each */
};

/* Builds the tree in arena. view must live as long. max_nodes 0 means FLAME_NODES_DEFAULT; other
 * values below FLAME_NODES_MIN mean FLAME_NODES_MIN. Errors: ERR_TOO_LARGE (the view's deadline; a
 * stack that is too deep). */
enum err_code flame_create(struct arena *arena, const struct view *view, uint32_t max_nodes,
                           const struct flame **ret_flame, struct err *err) MUST_USE;

/*
 * As flame_create, but uses all of max_nodes for the subtree of one node, given by the hash of its
 * path (path_hash.h). Each node on the path has one "other" child for everything beside the path,
 * however large. So values equal those in the whole tree. Errors also: ERR_NOT_FOUND (no node has
 * that path).
 */
enum err_code flame_create_below(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                 uint64_t path, const struct flame **ret_flame,
                                 struct err *err) MUST_USE;

#endif

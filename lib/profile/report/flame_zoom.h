/*
 * flame_zoom: finds a node by its path, and makes the graph as it looks zoomed into that node.
 *
 * The hash of a path is that of path_hash.h, which the addresses of pages also contain. Threads:
 * any.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_ZOOM_H
#define LIB_PROFILE_REPORT_FLAME_ZOOM_H

#include "lib/profile/report/flame.h"

/* Sets *ret_node to the first node whose path has this hash in one of the forms of path_hash.h, or
 * had it before its addresses got names (raw_path.h); 0, the root, if there is none. Costs a pass
 * over the nodes for each form that is tried and, if none has the hash, a pass over the stacks and
 * perhaps one more over the nodes. Errors: ERR_TOO_LARGE (the view's deadline). */
enum err_code flame_find_path(const struct flame *flame, uint64_t hash, uint32_t *ret_node,
                              struct err *err) MUST_USE;

/*
 * Makes a graph of the path from the root to node and its subtree, in arena. Nodes on the path keep
 * their cum but have no self and no other children, so that they are as wide as node in a picture.
 * Node 0 returns the graph itself.
 */
const struct flame *flame_zoom(struct arena *arena, const struct flame *flame, uint32_t node);

#endif

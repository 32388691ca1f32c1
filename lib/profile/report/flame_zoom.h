/*
 * flame_zoom: a node found by its path, and the graph as it looks when one zooms into it.
 *
 * A path's hash is that of path_hash.h, which addresses of views hold too. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_ZOOM_H
#define LIB_PROFILE_REPORT_FLAME_ZOOM_H

#include "lib/profile/report/flame.h"

/* The first node whose path has that hash, or had before addresses got names (raw_path.h); 0, the
 * root, when there is none. One to three loops over the nodes, and one over the stacks. */
uint32_t flame_find_path(const struct flame *flame, uint64_t hash);

/*
 * Only the way from the root to node, and what is below it, in arena. Nodes on the way keep their
 * cum but have no self and no other children, so that in a picture they are as wide as node. Node 0
 * gives the graph itself.
 */
const struct flame *flame_zoom(struct arena *arena, const struct flame *flame, uint32_t node);

#endif

/*
 * stacks: call stacks as one tree, each stack a node of it.
 *
 * The nodes stand in preorder (a node, then what it calls), so what a node leads to is the range
 * behind it, and parents come before their children. Node 0 is the root, without a frame. Stacks
 * are numbered in the order of their nodes; stack 0 is the empty one, the root. Frames are numbers
 * of whoever made the tree: locations. Calls of one node may have equal frames, and stacks may then
 * be equal too (those of a batch are kept as they came); a tree made of paths has no such.
 *
 * Most nodes are called by the one that stands before them. Such nodes are a chain, and who calls
 * is told of chains alone, so that a node takes little more than its frame: of a tree of 1.4
 * million nodes and 120,000 stacks 5.9 MB where a caller and a depth of each would make it 16.5 MB.
 *
 * Paths become a tree by sorting: about 300 ns a path of 20 frames. Threads: paths belong to one
 * thread, a finished tree to any number of readers.
 */
#ifndef STORE_BLOCK_STACKS_H
#define STORE_BLOCK_STACKS_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct stack_paths;

/* A node, and the chain that it is in. */
struct stack_place {
    uint32_t node;
    uint32_t chain;
};

/* Nodes from first to the next chain's first: each is called by the one before it. */
struct stack_chain {
    uint32_t first;
    uint32_t depth;            /* of the first */
    struct stack_place caller; /* of the first; of the root's chain the root itself */
};

struct stacks {
    uint32_t node_count;              /* at least 1 */
    uint32_t stack_count;             /* at least 1 */
    uint32_t chain_count;             /* at least 1: the root's, whose depth is 0 */
    const uint32_t *frames;           /* of each node; of the root: STACKS_NO_FRAME */
    const struct stack_chain *chains; /* in order of their nodes */
    const struct stack_place *ends;   /* of each stack its node, ascending */
};

#define STACKS_NO_FRAME UINT32_MAX
#define STACKS_ROOT 0
enum { STACKS_NODES_MAX = 1 << 28 };

/* How many frames the stack has. */
static inline uint32_t stacks_depth(const struct stacks *stacks, uint32_t stack)
{
    const struct stack_place end = stacks->ends[stack];
    const struct stack_chain *chain = &stacks->chains[end.chain];
    return chain->depth + end.node - chain->first;
}

/* From a node that is not the root to the one that calls it. */
static inline struct stack_place stacks_caller(const struct stacks *stacks,
                                               struct stack_place place)
{
    const struct stack_chain *chain = &stacks->chains[place.chain];
    if (place.node == chain->first)
        return chain->caller;
    place.node--;
    return place;
}

/* The node behind the chain's last one. */
static inline uint32_t stacks_chain_end(const struct stacks *stacks, uint32_t chain)
{
    return chain + 1 < stacks->chain_count ? stacks->chains[chain + 1].first : stacks->node_count;
}

/* The most frames that a stack has. */
static inline uint32_t stacks_deepest(const struct stacks *stacks)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < stacks->chain_count; i++) {
        const struct stack_chain *chain = &stacks->chains[i];
        const uint32_t depth = chain->depth + stacks_chain_end(stacks, i) - 1 - chain->first;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

/* Chains on their way: the root's is there at once. */
struct stack_chains {
    struct stack_chain *chains;
    uint32_t count;
    uint32_t *open; /* those that the last node is below, or in: from the root on */
    uint32_t open_count;
};

/* Room for most chains in arena, the root's not counted. */
void stack_chains_init(struct stack_chains *chains, struct arena *arena, struct arena *scratch,
                       uint32_t most);
/* One more begins at node. Its depth is at least 1 and at most that of the node before it. */
void stack_chains_add(struct stack_chains *chains, uint32_t node, uint32_t depth);

/* Stacks, each with all its frames. */
struct stack_paths *stack_paths_create(void);
void stack_paths_destroy(struct stack_paths *paths); /* NULL is a no-op */

/* One more: the room for its frames, from the root on, which the caller fills before the next. */
uint32_t *stack_paths_add(struct stack_paths *paths, uint32_t depth);

/*
 * All as a tree, in arena; calls of one node are ordered by frame. stack_of_path[i] becomes the
 * number of the stack that path i is; there is room for as many as were added. False when it has
 * more than STACKS_NODES_MAX nodes.
 */
bool stack_paths_finish(const struct stack_paths *paths, struct arena *arena,
                        struct stacks *ret_stacks, uint32_t *stack_of_path) MUST_USE;

#endif

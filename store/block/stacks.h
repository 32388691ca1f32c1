/*
 * stacks: call stacks as one tree; a stack is a node of it.
 *
 * Nodes are in preorder (a node, then what it calls), so the descendants of a node are the range
 * after it, and callers come before what they call. Node 0 is the root, without a frame. Stacks are
 * numbered in the order of their nodes; stack 0 is the empty one, the root. Frames are numbers of
 * the tree's creator: locations. Children of one node may have equal frames, and stacks may then be
 * equal too (those of a batch are kept as they came); a tree made by stack_paths has no such nodes.
 *
 * Most nodes are called by the node before them. A run of such nodes is a chain, and only chains
 * store their caller, so a node takes little more than its frame. Example, stacks main-a-b,
 * main-a-c and main-d:
 *
 *   node   0 root   1 main   2 a   3 b | 4 c | 5 d
 *   chain  0 ......................... | 1 . | 2 .     first = 0, 4, 5
 *                                                      caller = root, node 2, node 1
 *
 * A tree of 1.4 million nodes and 120,000 stacks takes 5.9 MB; with a caller and a depth per node
 * it would take 16.5 MB.
 *
 * Paths become a tree by sorting: about 300 ns per path of 20 frames. Threads: paths belong to one
 * thread, a finished tree to any number of readers.
 */
#ifndef STORE_BLOCK_STACKS_H
#define STORE_BLOCK_STACKS_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct stack_paths;

/* A node and its chain. */
struct stack_position {
    uint32_t node;
    uint32_t chain;
};

/* The nodes from first to before the next chain's first: each is called by the one before it. */
struct stack_chain {
    uint32_t first;
    uint32_t depth;               /* of the first */
    struct stack_position caller; /* of the first; the root's chain has the root itself */
};

struct stacks {
    uint32_t node_count;               /* at least 1 */
    uint32_t stack_count;              /* at least 1 */
    uint32_t chain_count;              /* at least 1: the root's, whose depth is 0 */
    const uint32_t *frames;            /* per node; the root's is STACKS_NO_FRAME */
    const struct stack_chain *chains;  /* in order of their nodes */
    const struct stack_position *ends; /* per stack: its node, ascending */
};

#define STACKS_NO_FRAME UINT32_MAX
#define STACKS_ROOT 0
enum { STACKS_NODES_MAX = 1 << 28 };

/* The number of frames of a stack. */
static inline uint32_t stacks_depth(const struct stacks *stacks, uint32_t stack)
{
    const struct stack_position end = stacks->ends[stack];
    const struct stack_chain *chain = &stacks->chains[end.chain];
    return chain->depth + end.node - chain->first;
}

/* The caller of a node that is not the root. */
static inline struct stack_position stacks_caller(const struct stacks *stacks,
                                                  struct stack_position position)
{
    const struct stack_chain *chain = &stacks->chains[position.chain];
    if (position.node == chain->first)
        return chain->caller;
    position.node--;
    return position;
}

/* The node after the chain's last. */
static inline uint32_t stacks_chain_end(const struct stacks *stacks, uint32_t chain)
{
    return chain + 1 < stacks->chain_count ? stacks->chains[chain + 1].first : stacks->node_count;
}

/* The largest number of frames of any stack. */
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

/* Chains while a tree is built; the root's exists from the start. */
struct stack_chains {
    struct stack_chain *chains;
    uint32_t count;
    uint32_t *open; /* the chains on the path to the last node, root first */
    uint32_t open_count;
};

/* Allocates space in arena for `most` chains besides the root's. */
void stack_chains_init(struct stack_chains *chains, struct arena *arena, struct arena *scratch,
                       uint32_t most);
/* Begins a chain at node, the next node in preorder. Its depth is at least 1 and at most that of
 * the node before it. */
void stack_chains_add(struct stack_chains *chains, uint32_t node, uint32_t depth);

/* Stacks, each with all its frames. */
struct stack_paths *stack_paths_create(void);
void stack_paths_destroy(struct stack_paths *paths); /* NULL is a no-op */

/* Adds a stack and returns space for its frames, root first, which the caller fills before the next
 * call. */
uint32_t *stack_paths_add(struct stack_paths *paths, uint32_t depth);

/* Builds the tree in arena; children of one node are ordered by frame. Sets stack_of_path[i], for
 * each path added, to the number of its stack. False when the tree has more than STACKS_NODES_MAX
 * nodes. */
bool stack_paths_finish(const struct stack_paths *paths, struct arena *arena,
                        struct stacks *ret_stacks, uint32_t *stack_of_path) MUST_USE;

#endif

/*
 * stacks: call stacks as one tree, each stack a node of it.
 *
 * The nodes stand in preorder (a node, then what it calls), so what a node leads to is the range
 * behind it, and parents come before their children. Node 0 is the root, without a frame. Stacks
 * are numbered in the order of their nodes; stack 0 is the empty one, the root. Frames are numbers
 * of whoever made the tree: locations. Calls of one node may have equal frames, and stacks may then
 * be equal too (those of a batch are kept as they came); a builder's tree has no such.
 *
 * A builder takes nodes in any order: a look-up per frame, about 10 ns while the tree is in cache.
 * Threads: a builder belongs to one thread, a finished tree to any number of readers.
 */
#ifndef STORE_STACKS_H
#define STORE_STACKS_H

#include <stdint.h>

struct arena;
struct stacks_builder;

struct stacks {
    uint32_t node_count;     /* at least 1 */
    uint32_t stack_count;    /* at least 1 */
    const uint32_t *parents; /* of the root: 0 */
    const uint32_t *frames;  /* of the root: STACKS_NO_FRAME */
    const uint32_t *depths;  /* of the root: 0 */
    const uint32_t *nodes;   /* of each stack, ascending */
};

#define STACKS_NO_FRAME UINT32_MAX
#define STACKS_ROOT 0
enum { STACKS_NODES_MAX = 1 << 28 };

struct stacks_builder *stacks_builder_create(void);
void stacks_builder_destroy(struct stacks_builder *builder); /* NULL is a no-op */

/* The node of frame below parent, which is the root or a node that this function gave. Past
 * STACKS_NODES_MAX nodes it gives parent: check the count when many are possible. */
uint32_t stacks_builder_child(struct stacks_builder *builder, uint32_t parent, uint32_t frame);
/* A stack ends at node. */
void stacks_builder_end(struct stacks_builder *builder, uint32_t node);
uint32_t stacks_builder_node_count(const struct stacks_builder *builder);

/*
 * The finished tree, in arena; calls of one node are ordered by frame. stack_of_node[i], for each
 * node of the builder, becomes the number of the stack that ends there (of others: undefined); it
 * has room for stacks_builder_node_count numbers.
 */
void stacks_builder_finish(const struct stacks_builder *builder, struct arena *arena,
                           struct stacks *ret_stacks, uint32_t *stack_of_node);

#endif

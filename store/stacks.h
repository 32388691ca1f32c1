/*
 * stacks: call stacks as one tree, each stack a node of it.
 *
 * The nodes stand in preorder (a node, then what it calls), so what a node leads to is the range
 * behind it, and parents come before their children. Node 0 is the root, without a frame. Stacks
 * are numbered in the order of their nodes; stack 0 is the empty one, the root. Frames are numbers
 * of whoever made the tree: locations. Calls of one node may have equal frames, and stacks may then
 * be equal too (those of a batch are kept as they came); a tree made of paths has no such.
 *
 * Paths become a tree by sorting: about 300 ns a path of 20 frames. Threads: paths belong to one
 * thread, a finished tree to any number of readers.
 */
#ifndef STORE_STACKS_H
#define STORE_STACKS_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct stack_paths;

struct stacks {
    uint32_t node_count;     /* at least 1 */
    uint32_t stack_count;    /* at least 1 */
    const uint32_t *parents; /* of the root: 0; NULL in a batch's, which is only to be written */
    const uint32_t *frames;  /* of the root: STACKS_NO_FRAME */
    const uint32_t *depths;  /* of the root: 0 */
    const uint32_t *nodes;   /* of each stack, ascending */
};

#define STACKS_NO_FRAME UINT32_MAX
#define STACKS_ROOT 0
enum { STACKS_NODES_MAX = 1 << 28 };

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

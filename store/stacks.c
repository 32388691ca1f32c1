#include "store/stacks.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

struct node {
    uint32_t parent;
    uint32_t frame;
};

struct stacks_builder {
    struct node *nodes;
    uint8_t *is_end; /* one per node */
    uint32_t count;
    uint32_t capacity;
    struct map_u64 children; /* parent and frame to node */
};

static void append_node(struct stacks_builder *builder, uint32_t parent, uint32_t frame)
{
    if (builder->count == builder->capacity) {
        builder->capacity = builder->capacity ? builder->capacity * 2 : FIRST_CAPACITY;
        builder->nodes = mem_resize(builder->nodes, builder->capacity, sizeof(*builder->nodes));
        builder->is_end = mem_resize(builder->is_end, builder->capacity, 1);
    }
    builder->is_end[builder->count] = 0;
    builder->nodes[builder->count++] = (struct node){.parent = parent, .frame = frame};
}

struct stacks_builder *stacks_builder_create(void)
{
    struct stacks_builder *builder = mem_new(struct stacks_builder, 1);
    append_node(builder, STACKS_ROOT, STACKS_NO_FRAME);
    builder->is_end[STACKS_ROOT] = 1;
    return builder;
}

void stacks_builder_destroy(struct stacks_builder *builder)
{
    if (!builder)
        return;
    map_u64_fini(&builder->children);
    mem_free(builder->nodes);
    mem_free(builder->is_end);
    mem_free(builder);
}

uint32_t stacks_builder_child(struct stacks_builder *builder, uint32_t parent, uint32_t frame)
{
    if (builder->count >= STACKS_NODES_MAX)
        return parent;
    const uint32_t node =
        map_u64_add(&builder->children, (uint64_t)parent << 32 | frame, builder->count);
    if (node == builder->count)
        append_node(builder, parent, frame);
    return node;
}

void stacks_builder_end(struct stacks_builder *builder, uint32_t node)
{
    builder->is_end[node] = 1;
}

uint32_t stacks_builder_node_count(const struct stacks_builder *builder)
{
    return builder->count;
}

/* ---- into preorder ---- */

static int compare_frames(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

/*
 * All nodes by parent, those of one parent by frame: starts[i] is where the children of node i
 * begin. Here "parent" of an entry is its own number in the builder: that of its parent is known by
 * the place.
 */
static struct node *list_children(const struct stacks_builder *builder, struct arena *arena,
                                  uint32_t *starts)
{
    const uint32_t count = builder->count;
    struct node *children = arena_new_raw(arena, struct node, count);
    memset(starts, 0, (count + (size_t)1) * sizeof(*starts));
    for (uint32_t i = 1; i < count; i++)
        starts[builder->nodes[i].parent + 1]++;
    for (uint32_t i = 0; i < count; i++)
        starts[i + 1] += starts[i];
    uint32_t *next = arena_new_raw(arena, uint32_t, count);
    memcpy(next, starts, count * sizeof(*next));
    for (uint32_t i = 1; i < count; i++) {
        const struct node node = builder->nodes[i];
        children[next[node.parent]++] = (struct node){.parent = i, .frame = node.frame};
    }
    for (uint32_t i = 0; i < count; i++) {
        if (starts[i + 1] - starts[i] > 1)
            qsort(children + starts[i], starts[i + 1] - starts[i], sizeof(*children),
                  compare_frames);
    }
    return children;
}

struct order {
    const struct stacks_builder *builder;
    uint32_t *parents;
    uint32_t *frames;
    uint32_t *depths;
    uint32_t *nodes;
    uint32_t *stack_of_node;
    uint32_t node_count;
    uint32_t stack_count;
};

/* Puts a node of the builder next; what its parent and depth are in the new order is known. */
static uint32_t put_node(struct order *order, uint32_t node, uint32_t parent, uint32_t depth)
{
    const uint32_t place = order->node_count++;
    order->parents[place] = parent;
    order->frames[place] = order->builder->nodes[node].frame;
    order->depths[place] = depth;
    if (order->builder->is_end[node]) {
        order->stack_of_node[node] = order->stack_count;
        order->nodes[order->stack_count++] = place;
    }
    return place;
}

/* Where the walk is in the children of one node. */
struct level {
    uint32_t next;
    uint32_t end;
    uint32_t place;
};

static void put_all(struct order *order, const struct node *children, const uint32_t *starts)
{
    uint32_t depth = 0, capacity = FIRST_CAPACITY;
    struct level *levels = mem_new(struct level, capacity);
    levels[0] = (struct level){
        .next = starts[0], .end = starts[1], .place = put_node(order, STACKS_ROOT, STACKS_ROOT, 0)};
    for (;;) {
        struct level *level = &levels[depth];
        if (level->next == level->end) {
            if (depth-- == 0)
                break;
            continue;
        }
        const uint32_t node = children[level->next++].parent;
        const uint32_t place = put_node(order, node, level->place, depth + 1);
        if (++depth == capacity) {
            capacity *= 2;
            levels = mem_resize(levels, capacity, sizeof(*levels));
        }
        levels[depth] =
            (struct level){.next = starts[node], .end = starts[node + 1], .place = place};
    }
    mem_free(levels);
}

static uint32_t count_ends(const struct stacks_builder *builder)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < builder->count; i++)
        count += builder->is_end[i];
    return count;
}

void stacks_builder_finish(const struct stacks_builder *builder, struct arena *arena,
                           struct stacks *ret_stacks, uint32_t *stack_of_node)
{
    arena_auto scratch = arena_create();
    uint32_t *starts = arena_new_raw(scratch, uint32_t, builder->count + (size_t)1);
    const struct node *children = list_children(builder, scratch, starts);
    struct order order = {
        .builder = builder,
        .parents = arena_new_raw(arena, uint32_t, builder->count),
        .frames = arena_new_raw(arena, uint32_t, builder->count),
        .depths = arena_new_raw(arena, uint32_t, builder->count),
        .nodes = arena_new_raw(arena, uint32_t, count_ends(builder)),
        .stack_of_node = stack_of_node,
    };
    put_all(&order, children, starts);
    *ret_stacks = (struct stacks){
        .node_count = order.node_count,
        .stack_count = order.stack_count,
        .parents = order.parents,
        .frames = order.frames,
        .depths = order.depths,
        .nodes = order.nodes,
    };
}

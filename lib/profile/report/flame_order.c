#include "lib/profile/report/flame_order.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <stdlib.h>

/* A child and the value by which it is sorted among its siblings. */
struct ranked {
    int64_t rank;
    uint32_t node;
};

static int compare_siblings(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Insertion sort for few siblings, the usual case. It is stable, and siblings arrive in the
 * order of their frames, which breaks ties. */
static void sort_siblings(struct ranked *siblings, uint32_t count)
{
    if (count > 24) {
        qsort(siblings, count, sizeof(*siblings), compare_siblings);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct ranked item = siblings[i];
        uint32_t at = i;
        for (; at > 0 && siblings[at - 1].rank < item.rank; at--)
            siblings[at] = siblings[at - 1];
        siblings[at] = item;
    }
}

static void find_subtree_sizes(const uint32_t *parent, uint32_t count, uint32_t *sizes)
{
    for (uint32_t i = 0; i < count; i++)
        sizes[i] = 1;
    for (uint32_t i = count - 1; i > 0; i--)
        sizes[parent[i]] += sizes[i];
}

static int64_t rank_of(int64_t *const *cum, uint32_t node)
{
    int64_t rank = cum[VIEW_SIDE_B][node];
    return cum[VIEW_SIDE_A] && cum[VIEW_SIDE_A][node] > rank ? cum[VIEW_SIDE_A][node] : rank;
}

/* Assigns new indexes from the root downwards. A subtree is contiguous, so the index of a child
 * is that of its parent plus 1 plus the sizes of the siblings before it. A node with one child,
 * the usual case, needs no sorting: the child follows it. */
uint32_t *flame_order(struct arena *scratch, const uint32_t *parent, uint32_t count,
                      int64_t *const *cum, uint32_t *sizes)
{
    uint32_t *new_index = arena_new_raw(scratch, uint32_t, count);
    struct ranked *children = NULL;
    uint32_t capacity = 0;
    find_subtree_sizes(parent, count, sizes);
    new_index[0] = 0;
    for (uint32_t node = 0; node < count; node++) {
        uint32_t end = node + sizes[node], next = new_index[node] + 1, child_count = 0;
        if (node + 1 == end)
            continue;
        if (node + 1 + sizes[node + 1] == end) {
            new_index[node + 1] = next;
            continue;
        }
        for (uint32_t child = node + 1; child < end; child += sizes[child]) {
            vec_reserve(children, capacity, child_count + 1);
            children[child_count++] = (struct ranked){.rank = rank_of(cum, child), .node = child};
        }
        sort_siblings(children, child_count);
        for (uint32_t i = 0; i < child_count; i++) {
            new_index[children[i].node] = next;
            next += sizes[children[i].node];
        }
    }
    mem_free(children);
    return new_index;
}

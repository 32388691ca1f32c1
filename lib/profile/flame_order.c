#include "lib/profile/flame_order.h"

#include "lib/base/mem.h"

#include <stdlib.h>

/* A child, and by what it is compared with its siblings. */
struct ranked {
    int64_t rank;
    uint32_t node;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Most nodes have few children; those come in the order of their frames, which breaks ties. */
static void sort_siblings(struct ranked *siblings, uint32_t count)
{
    if (count > 24) {
        qsort(siblings, count, sizeof(*siblings), compare_ranked);
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

/* Children of node i are at first_child[i] .. first_child[i + 1] of the answer. */
static struct ranked *rank_children(struct arena *scratch, const uint32_t *parent, uint32_t count,
                                    int64_t *const *cum, uint32_t **ret_first_child)
{
    uint32_t *first_child = arena_new(scratch, uint32_t, (size_t)count + 2);
    struct ranked *children = arena_new_raw(scratch, struct ranked, count);
    /* Counting sort by parent; the counts are shifted by two, so that filling shifts them back. */
    for (uint32_t i = 1; i < count; i++)
        first_child[parent[i] + 2]++;
    for (uint32_t i = 2; i < count + 2; i++)
        first_child[i] += first_child[i - 1];
    for (uint32_t i = 1; i < count; i++) {
        int64_t rank = cum[VIEW_SIDE_B][i];
        if (cum[VIEW_SIDE_A] && cum[VIEW_SIDE_A][i] > rank)
            rank = cum[VIEW_SIDE_A][i];
        children[first_child[parent[i] + 1]++] = (struct ranked){.rank = rank, .node = i};
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t siblings = first_child[i + 1] - first_child[i];
        if (siblings > 1)
            sort_siblings(children + first_child[i], siblings);
    }
    *ret_first_child = first_child;
    return children;
}

uint32_t *flame_order(struct arena *scratch, const uint32_t *parent, uint32_t count,
                      int64_t *const *cum)
{
    uint32_t *first_child;
    const struct ranked *children = rank_children(scratch, parent, count, cum, &first_child);
    uint32_t done = 0, waiting = 0;
    uint32_t *old_of_new = arena_new_raw(scratch, uint32_t, count);
    uint32_t *stack = arena_new_raw(scratch, uint32_t, count);
    stack[waiting++] = 0;
    while (waiting) {
        uint32_t node = stack[--waiting];
        old_of_new[done++] = node;
        for (uint32_t i = first_child[node + 1]; i-- > first_child[node];)
            stack[waiting++] = children[i].node;
    }
    return old_of_new;
}

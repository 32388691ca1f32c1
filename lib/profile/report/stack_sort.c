#include "lib/profile/report/stack_sort.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <sys/random.h>

/* A range of stacks whose first depth frames are equal. */
struct sort_range {
    uint32_t start;
    uint32_t count;
    uint64_t depth;
};

/* The frames of a stack; these items are sorted. key is the frame at the current depth, plus 1. */
struct item {
    const uint32_t *frames;
    uint32_t count;
    uint32_t stack;
};

struct sorter {
    struct item *items;
    uint32_t *keys;
    struct sort_range *tasks; /* ranges are not empty and do not overlap: at most one per stack */
    size_t task_count;
    size_t task_capacity;
    uint64_t random;
};

enum { INSERTION_COUNT = 12 };

/* 0 after the last frame, so that a stack precedes those that extend it. */
static uint32_t key_at(const struct item *item, uint64_t depth)
{
    return depth < item->count ? item->frames[depth] + 1 : 0;
}

static void push_task(struct sorter *sorter, uint32_t start, uint32_t count, uint64_t depth)
{
    if (count < 2)
        return;
    vec_reserve(sorter->tasks, sorter->task_capacity, sorter->task_count + 1);
    sorter->tasks[sorter->task_count++] = (struct sort_range){start, count, depth};
}

static bool is_before(const struct item *a, const struct item *b, uint64_t depth)
{
    for (;; depth++) {
        uint32_t x = key_at(a, depth), y = key_at(b, depth);
        if (x != y)
            return x < y;
        if (x == 0)
            return false;
    }
}

static void insertion_sort(struct item *items, uint32_t count, uint64_t depth)
{
    for (uint32_t i = 1; i < count; i++) {
        struct item item = items[i];
        uint32_t at = i;
        for (; at > 0 && is_before(&item, &items[at - 1], depth); at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static uint64_t next_random(struct sorter *sorter)
{
    uint64_t x = sorter->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return sorter->random = x;
}

static uint32_t median(uint32_t a, uint32_t b, uint32_t c)
{
    if (a > b) {
        uint32_t swap = a;
        a = b;
        b = swap;
    }
    return c <= a ? a : c >= b ? b : c;
}

static uint32_t choose_pivot(struct sorter *sorter, const uint32_t *keys, uint32_t count)
{
    uint64_t random = next_random(sorter);
    return median(keys[(random & 0xffff) * count >> 16],
                  keys[(random >> 16 & 0xffff) * count >> 16],
                  keys[(random >> 32 & 0xffff) * count >> 16]);
}

static void swap_items(struct item *items, uint32_t *keys, uint32_t a, uint32_t b)
{
    struct item item = items[a];
    items[a] = items[b];
    items[b] = item;
    uint32_t key = keys[a];
    keys[a] = keys[b];
    keys[b] = key;
}

/* Splits a range into stacks less than, equal to and greater than a pivot; the equal ones
 * continue with the next frame. */
static void partition(struct sorter *sorter, struct sort_range sort_range)
{
    struct item *items = sorter->items + sort_range.start;
    uint32_t *keys = sorter->keys + sort_range.start;
    for (uint32_t i = 0; i < sort_range.count; i++)
        keys[i] = key_at(&items[i], sort_range.depth);
    uint32_t pivot = choose_pivot(sorter, keys, sort_range.count);
    uint32_t less = 0, at = 0, greater = sort_range.count;
    while (at < greater) {
        if (keys[at] < pivot)
            swap_items(items, keys, less++, at++);
        else if (keys[at] > pivot)
            swap_items(items, keys, at, --greater);
        else
            at++;
    }
    push_task(sorter, sort_range.start, less, sort_range.depth);
    push_task(sorter, sort_range.start + greater, sort_range.count - greater, sort_range.depth);
    if (pivot != 0)
        push_task(sorter, sort_range.start + less, greater - less, sort_range.depth + 1);
}

/* Steps count partitioned items, so that the deadline is checked equally often with many small
 * tasks. */
static enum err_code sort_all(struct sorter *sorter, const struct view *view, uint32_t count,
                              struct err *err)
{
    uint64_t steps = 0;
    push_task(sorter, 0, count, 0);
    while (sorter->task_count) {
        struct sort_range sort_range = sorter->tasks[--sorter->task_count];
        if (sort_range.count <= INSERTION_COUNT)
            insertion_sort(sorter->items + sort_range.start, sort_range.count, sort_range.depth);
        else
            partition(sorter, sort_range);
        steps += sort_range.count;
        if (steps >= VIEW_CHECK_STEPS) {
            steps = 0;
            if (view_check_cpu(view, err))
                return err->code;
        }
    }
    return ERR_NONE;
}

enum err_code stack_sort(struct arena *arena, const struct view *view, uint32_t **ret_order,
                         struct err *err)
{
    arena_auto scratch = arena_create();
    struct sorter sorter = {.items = arena_new_raw(scratch, struct item, view->stack_count),
                            .keys = arena_new_raw(scratch, uint32_t, view->stack_count),
                            .random = UINT64_C(0x9e3779b97f4a7c15)};
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) == (ssize_t)sizeof(seed) && seed != 0)
        sorter.random = seed;
    for (uint32_t i = 0; i < view->stack_count; i++) {
        uint64_t start = view->stack_start[i];
        sorter.items[i] = (struct item){.frames = view->entries + start,
                                        .count = (uint32_t)(view->stack_start[i + 1] - start),
                                        .stack = i};
    }
    enum err_code code = sort_all(&sorter, view, view->stack_count, err);
    mem_free(sorter.tasks);
    if (code)
        return code;
    uint32_t *order = arena_new_raw(arena, uint32_t, view->stack_count);
    for (uint32_t i = 0; i < view->stack_count; i++)
        order[i] = sorter.items[i].stack;
    *ret_order = order;
    return ERR_NONE;
}

/*
 * Paths are sorted by a multikey quicksort that compares one frame of each at a time (Bentley and
 * Sedgewick, "Fast Algorithms for Sorting and Searching Strings"), so that common prefixes are
 * compared once. Building the tree node by node would cost a hash look-up per frame, which misses
 * the caches.
 */
#include "store/block/stacks.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <string.h>

enum { FIRST_CAPACITY = 1024, FEW = 12 };

struct stack_paths {
    uint32_t *frames; /* frames of all paths, one path after the other, each root first */
    uint64_t frame_count;
    uint64_t frame_capacity;
    uint64_t *starts; /* start of each path, and the end of the last */
    uint32_t count;
    uint32_t capacity;
};

struct stack_paths *stack_paths_create(void)
{
    struct stack_paths *paths = mem_new(struct stack_paths, 1);
    paths->capacity = FIRST_CAPACITY;
    paths->starts = mem_new(uint64_t, paths->capacity);
    return paths;
}

void stack_paths_destroy(struct stack_paths *paths)
{
    if (!paths)
        return;
    mem_free(paths->frames);
    mem_free(paths->starts);
    mem_free(paths);
}

uint32_t *stack_paths_add(struct stack_paths *paths, uint32_t depth)
{
    /* One more: frames is never NULL, even for stacks of depth 0. */
    vec_reserve(paths->frames, paths->frame_capacity, paths->frame_count + depth + 1);
    vec_reserve(paths->starts, paths->capacity, paths->count + 2);
    uint32_t *frames = paths->frames + paths->frame_count;
    paths->frame_count += depth;
    paths->starts[++paths->count] = paths->frame_count;
    return frames;
}

/* ---- in order ---- */

struct entry {
    uint64_t key; /* the frame at the current depth, plus 1; 0: the path has ended */
    uint32_t path;
};

/* Entries whose paths are equal up to depth. */
struct group {
    uint32_t first;
    uint32_t count;
    uint32_t depth;
    bool has_keys; /* keys are of that depth */
};

struct sorting {
    const struct stack_paths *paths;
    struct entry *entries;
    struct group *groups; /* not sorted yet */
    uint32_t group_count;
    uint32_t group_capacity;
    uint64_t random;
};

static inline uint64_t key_at(const struct stack_paths *paths, uint32_t path, uint32_t depth)
{
    const uint64_t at = paths->starts[path] + depth;
    return at < paths->starts[path + 1] ? paths->frames[at] + UINT64_C(1) : 0;
}

static void push_range(struct sorting *sorting, struct group group)
{
    if (group.count < 2)
        return;
    vec_reserve(sorting->groups, sorting->group_capacity, sorting->group_count + 1);
    sorting->groups[sorting->group_count++] = group;
}

static bool is_before(const struct stack_paths *paths, uint32_t a, uint32_t b, uint32_t depth)
{
    for (;; depth++) {
        const uint64_t x = key_at(paths, a, depth), y = key_at(paths, b, depth);
        if (x != y || !x)
            return x < y;
    }
}

static void sort_few(const struct sorting *sorting, const struct group *group)
{
    struct entry *entries = sorting->entries + group->first;
    for (uint32_t i = 1; i < group->count; i++) {
        const struct entry entry = entries[i];
        uint32_t at = i;
        for (; at && is_before(sorting->paths, entry.path, entries[at - 1].path, group->depth);
             at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* A random pivot, so that no input is always the worst case. */
static uint64_t choose_key(struct sorting *sorting, const struct group *group)
{
    uint64_t keys[3];
    for (int i = 0; i < 3; i++) {
        sorting->random ^= sorting->random << 13;
        sorting->random ^= sorting->random >> 7;
        sorting->random ^= sorting->random << 17;
        keys[i] = sorting->entries[group->first + sorting->random % group->count].key;
    }
    const uint64_t least = keys[0] < keys[1] ? keys[0] : keys[1];
    const uint64_t most = keys[0] < keys[1] ? keys[1] : keys[0];
    return keys[2] < least ? least : keys[2] > most ? most : keys[2];
}

static void swap_paths(struct entry *a, struct entry *b)
{
    const struct entry kept = *a;
    *a = *b;
    *b = kept;
}

/* Partitions a group into the entries below, equal to and above the pivot. */
static void partition_range(struct sorting *sorting, const struct group *group)
{
    struct entry *entries = sorting->entries + group->first;
    const uint64_t key = choose_key(sorting, group);
    uint32_t low = 0, high = group->count;
    for (uint32_t at = 0; at < high;) {
        if (entries[at].key < key)
            swap_paths(&entries[low++], &entries[at++]);
        else if (entries[at].key > key)
            swap_paths(&entries[at], &entries[--high]);
        else
            at++;
    }
    push_range(sorting, (struct group){group->first, low, group->depth, true});
    if (key)
        push_range(sorting,
                   (struct group){group->first + low, high - low, group->depth + 1, false});
    push_range(sorting,
               (struct group){group->first + high, group->count - high, group->depth, true});
}

static void sort_group(struct sorting *sorting, const struct group *group)
{
    if (group->count <= FEW) {
        sort_few(sorting, group);
        return;
    }
    struct entry *entries = sorting->entries + group->first;
    for (uint32_t i = 0; !group->has_keys && i < group->count; i++)
        entries[i].key = key_at(sorting->paths, entries[i].path, group->depth);
    partition_range(sorting, group);
}

static struct entry *sort_paths(const struct stack_paths *paths, struct arena *scratch)
{
    struct sorting sorting = {
        .paths = paths,
        .entries = arena_new(scratch, struct entry, paths->count),
        .groups = mem_new(struct group, FIRST_CAPACITY),
        .group_capacity = FIRST_CAPACITY,
        .random = (uint64_t)(uintptr_t)paths | 1,
    };
    for (uint32_t i = 0; i < paths->count; i++)
        sorting.entries[i].path = i;
    push_range(&sorting, (struct group){.count = paths->count});
    while (sorting.group_count) {
        const struct group group = sorting.groups[--sorting.group_count];
        sort_group(&sorting, &group);
    }
    mem_free(sorting.groups);
    return sorting.entries;
}

/* ---- as a tree ---- */

static uint32_t depth_of(const struct stack_paths *paths, uint32_t path)
{
    return (uint32_t)(paths->starts[path + 1] - paths->starts[path]);
}

static uint32_t common_depth(const struct stack_paths *paths, uint32_t a, uint32_t b)
{
    const uint32_t *x = paths->frames + paths->starts[a], *y = paths->frames + paths->starts[b];
    const uint32_t depth_of_a = depth_of(paths, a), depth_of_b = depth_of(paths, b);
    const uint32_t most = depth_of_a < depth_of_b ? depth_of_a : depth_of_b;
    uint32_t depth = 0;
    while (depth < most && x[depth] == y[depth])
        depth++;
    return depth;
}

/* Returns per entry how many frames it shares with the one before; *ret_count: all nodes, with the
 * root. */
static uint32_t *find_common(const struct stack_paths *paths, const struct entry *entries,
                             struct arena *scratch, uint64_t *ret_count)
{
    uint32_t *common = arena_new_raw(scratch, uint32_t, paths->count);
    *ret_count = 1;
    for (uint32_t i = 0; i < paths->count; i++) {
        const uint32_t depth = depth_of(paths, entries[i].path);
        common[i] = i ? common_depth(paths, entries[i - 1].path, entries[i].path) : 0;
        *ret_count += depth - common[i];
    }
    return common;
}

/* ---- chains ---- */

void stack_chains_init(struct stack_chains *chains, struct arena *arena, struct arena *scratch,
                       uint32_t most)
{
    *chains = (struct stack_chains){
        .chains = arena_new_raw(arena, struct stack_chain, most + (size_t)1),
        .count = 1,
        .open = arena_new_raw(scratch, uint32_t, most + (size_t)1),
        .open_count = 1,
    };
    chains->chains[0] = (struct stack_chain){.first = STACKS_ROOT};
    chains->open[0] = 0;
}

void stack_chains_add(struct stack_chains *chains, uint32_t node, uint32_t depth)
{
    while (chains->chains[chains->open[chains->open_count - 1]].depth >= depth)
        chains->open_count--;
    const uint32_t number = chains->open[chains->open_count - 1];
    const struct stack_chain *callers = &chains->chains[number];
    chains->chains[chains->count] = (struct stack_chain){
        .first = node,
        .depth = depth,
        .caller = {.node = callers->first + depth - 1 - callers->depth, .chain = number},
    };
    chains->open[chains->open_count++] = chains->count++;
}

/* ---- as a tree ---- */

bool stack_paths_finish(const struct stack_paths *paths, struct arena *arena,
                        struct stacks *ret_stacks, uint32_t *stack_of_path)
{
    arena_auto scratch = arena_create();
    const struct entry *entries = sort_paths(paths, scratch);
    uint64_t count;
    const uint32_t *common = find_common(paths, entries, scratch, &count);
    if (count > STACKS_NODES_MAX)
        return false;
    uint32_t *frames = arena_new_raw(arena, uint32_t, count);
    struct stack_position *ends =
        arena_new_raw(arena, struct stack_position, paths->count + (size_t)1);
    struct stack_chains chains;
    stack_chains_init(&chains, arena, scratch, paths->count);
    ends[0] = (struct stack_position){.node = STACKS_ROOT};
    frames[0] = STACKS_NO_FRAME;
    uint32_t node_count = 1, stack_count = 1, depth_before = 0;
    for (uint32_t i = 0; i < paths->count; i++) {
        const uint32_t path = entries[i].path, depth = depth_of(paths, path);
        const uint32_t more = depth - common[i];
        if (more && common[i] < depth_before)
            stack_chains_add(&chains, node_count, common[i] + 1);
        if (more) {
            memcpy(frames + node_count, paths->frames + paths->starts[path] + common[i],
                   more * sizeof(*frames));
            node_count += more;
            ends[stack_count++] =
                (struct stack_position){.node = node_count - 1, .chain = chains.count - 1};
        }
        depth_before = depth;
        stack_of_path[path] = stack_count - 1; /* equal paths are one stack */
    }
    *ret_stacks = (struct stacks){
        .node_count = node_count,
        .stack_count = stack_count,
        .chain_count = chains.count,
        .frames = frames,
        .chains = chains.chains,
        .ends = ends,
    };
    return true;
}

/*
 * Builds the call tree from sorted stacks.
 *
 * Sorted stacks (stack_sort.h) visit the tree in preorder, so one pass from left to right builds it
 * without lookups: the prefix that a stack shares with the previous one consists of open nodes, the
 * rest are new nodes. Example: the stacks
 *
 *   main;parse;read  5
 *   main;parse       2
 *   main;send        1
 *
 * open main, parse and read; add 2 to parse after closing read; then close parse and open send. A
 * second step sorts siblings by value and rewrites the arrays in that order.
 *
 * A tree that is too large takes two passes. The first one (weigh_tree) only computes the weight of
 * each node, its value plus those of its descendants, and counts nodes by weight; from these counts
 * choose_limit derives the smallest weight that may stay. The second one (build_tree) builds the
 * tree and removes smaller nodes when it closes them. So memory depends on max_nodes and the
 * deepest stack, not on the size of the whole tree.
 */
#include "lib/profile/report/flame.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/report/flame_order.h"
#include "lib/profile/report/flame_root.h"
#include "lib/profile/report/stack_sort.h"

#include <assert.h>
#include <math.h>

/* Weights are counted in buckets: the position of the leading bit and the 5 bits after it, so
 * buckets are 3 % wide. Smaller weights than 32 have a bucket each. */
enum { BUCKET_BITS = 5, BUCKET_COUNT = 64 << BUCKET_BITS };

/* A tree under construction, with siblings in the order of their frames. */
struct tree {
    uint32_t *frame;
    uint32_t *parent;
    int64_t *self[VIEW_SIDE_COUNT]; /* side A only in a diff */
    /* number of nodes merged into an "other" node; NULL if the tree is not cut */
    uint32_t *hidden;
    uint32_t count;
};

/* The position of a node relative to the node whose subtree is requested (by default the root). */
enum node_position { ON_PATH, BELOW, BESIDE };

/* A node on the path from the root to the current position. */
struct open_node {
    uint32_t node;
    uint32_t frame;
    enum node_position position;
    uint64_t weight;       /* magnitudes of its own value and those of its descendants */
    uint32_t least_bucket; /* lowest bucket of its children; BUCKET_COUNT: none */
    uint64_t hidden_count;
    int64_t hidden_value[VIEW_SIDE_COUNT];
};

struct build {
    struct arena *arena;
    struct arena *scratch;
    const struct view *view;
    uint32_t *order; /* the sorted stacks */
    struct flame_root root;
    struct tree tree;
    struct open_node *path;
    uint64_t path_count;
    uint64_t max_depth;
    uint32_t max_nodes;
    uint32_t least_kept; /* lowest bucket that stays; 0 keeps all nodes */
    uint64_t *kept_by_bucket;
    int64_t *others_by_bucket; /* a difference array, see weigh_closed_node */
    struct flame *flame;
};

static uint64_t add_weight(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/*
 * The weight of a stack when nodes are chosen. In a normalised diff the two sides have to be
 * comparable, so the side that is to be larger is multiplied by the scale or its inverse. Neither
 * side is reduced: with a scale of 1/1000, the stacks of a thousand small values would all weigh 0,
 * and none would stay.
 */
static uint64_t stack_weight(const struct view *view, uint32_t stack)
{
    uint64_t size = magnitude(view->values[stack]);
    double scale = fabs(view->scale);
    enum view_side enlarged = scale < 1 ? VIEW_SIDE_A : VIEW_SIDE_B;
    if (scale == 1 || scale == 0 || view->value_side[stack] != enlarged)
        return size;
    double weight = (double)size * (scale < 1 ? 1 / scale : scale);
    return weight < 0x1p63 ? (uint64_t)weight : UINT64_C(1) << 63;
}

static uint32_t weight_bucket(uint64_t weight)
{
    if (weight < (1 << BUCKET_BITS))
        return (uint32_t)weight;
    unsigned top = 63 - (unsigned)__builtin_clzll(weight);
    return (top - BUCKET_BITS + 1) << BUCKET_BITS |
           (uint32_t)(weight >> (top - BUCKET_BITS) & ((1 << BUCKET_BITS) - 1));
}

/* ---- the path of open nodes ---- */

static const uint32_t *stack_frames(const struct view *view, uint32_t stack, uint64_t *ret_count)
{
    *ret_count = view->stack_start[stack + 1] - view->stack_start[stack];
    return view->entries + view->stack_start[stack];
}

/* The number of leading frames of a stack that are open already. */
static uint64_t shared_depth(const struct build *build, const uint32_t *frames, uint64_t count)
{
    uint64_t depth = 0;
    while (depth < count && depth + 1 < build->path_count &&
           build->path[depth + 1].frame == frames[depth])
        depth++;
    return depth;
}

/* The bucket that decides whether a node stays. When a subtree is requested, nodes beside the
 * path to it have the lowest bucket, so they are removed first, and nodes on the path have the
 * highest, so they are never removed. */
static uint32_t node_bucket(const struct build *build, const struct open_node *closed)
{
    if (closed->position == BESIDE)
        return 0;
    uint32_t bucket = weight_bucket(closed->weight);
    if (build->root.depth == 0)
        return bucket;
    if (closed->position == ON_PATH)
        return BUCKET_COUNT - 1;
    return bucket ? bucket : 1;
}

static enum node_position child_position(const struct build *build, uint32_t frame)
{
    const struct open_node *parent = &build->path[build->path_count - 1];
    uint64_t depth = build->path_count - 1;
    if (parent->position != ON_PATH)
        return parent->position;
    if (depth == build->root.depth)
        return BELOW;
    return build->root.frames[depth] == frame ? ON_PATH : BESIDE;
}

static void add_self(struct tree *tree, uint32_t node, uint32_t side, int64_t value)
{
    tree->self[side][node] = view_add(tree->self[side][node], value);
}

/* ---- first pass: weights ---- */

static void weigh_closed_node(struct build *build)
{
    const struct open_node *closed = &build->path[--build->path_count];
    uint32_t bucket = node_bucket(build, closed);
    build->kept_by_bucket[bucket]++;
    /* For every limit in (least_bucket, bucket] the node stays and needs an "other" child,
     * because its smallest child is removed. Record +1 at the beginning of that interval and -1
     * after its end; the prefix sum at a limit is then the number of "other" nodes. */
    if (closed->least_bucket < bucket) {
        build->others_by_bucket[closed->least_bucket + 1]++;
        build->others_by_bucket[bucket + 1]--;
    }
    if (build->path_count == 0)
        return;
    struct open_node *parent = &build->path[build->path_count - 1];
    parent->weight = add_weight(parent->weight, closed->weight);
    if (bucket < parent->least_bucket)
        parent->least_bucket = bucket;
}

static void open_root(struct build *build)
{
    build->path[0] = (struct open_node){.frame = VIEW_ROOT_FRAME, .least_bucket = BUCKET_COUNT};
    build->path_count = 1;
}

static enum err_code weigh_tree(struct build *build, struct err *err)
{
    const struct view *view = build->view;
    open_root(build);
    for (uint32_t i = 0; i < view->stack_count; i++) {
        uint64_t count;
        if (i % VIEW_CHECK_STEPS == 0 && view_check_cpu(view, err))
            return err->code;
        const uint32_t *frames = stack_frames(view, build->order[i], &count);
        uint64_t shared = shared_depth(build, frames, count);
        while (build->path_count > shared + 1)
            weigh_closed_node(build);
        while (build->path_count <= count) {
            uint32_t frame = frames[build->path_count - 1];
            enum node_position position = child_position(build, frame);
            build->path[build->path_count++] = (struct open_node){
                .frame = frame, .position = position, .least_bucket = BUCKET_COUNT};
        }
        struct open_node *leaf = &build->path[count];
        leaf->weight = add_weight(leaf->weight, stack_weight(view, build->order[i]));
    }
    while (build->path_count)
        weigh_closed_node(build);
    return ERR_NONE;
}

/* Chooses the lowest limit with which the remaining nodes and their "other" children fit into
 * max_nodes. Starts at the highest bucket and adds one bucket after the other. */
static enum err_code choose_limit(struct build *build, struct err *err)
{
    build->kept_by_bucket = arena_new(build->scratch, uint64_t, BUCKET_COUNT + 1);
    build->others_by_bucket = arena_new(build->scratch, int64_t, BUCKET_COUNT + 2);
    enum err_code code = weigh_tree(build, err);
    if (code)
        return code;
    int64_t others = 0;
    for (uint32_t i = 0; i < BUCKET_COUNT; i++)
        others += build->others_by_bucket[i];
    uint64_t kept = 0;
    uint32_t limit = BUCKET_COUNT;
    while (limit > 0) {
        uint64_t more = kept + build->kept_by_bucket[limit - 1];
        if (limit < BUCKET_COUNT)
            others -= build->others_by_bucket[limit];
        if (more + (uint64_t)others > build->max_nodes)
            break;
        kept = more;
        limit--;
    }
    build->least_kept = limit || build->root.depth == 0 ? limit : 1;
    return ERR_NONE;
}

/* ---- second pass: the tree ---- */

static uint32_t append_node(struct tree *tree, uint32_t frame, uint32_t parent)
{
    uint32_t node = tree->count++;
    tree->frame[node] = frame;
    tree->parent[node] = parent;
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        if (tree->self[side])
            tree->self[side][node] = 0;
    }
    if (tree->hidden)
        tree->hidden[node] = 0;
    return node;
}

static void append_other(struct build *build, const struct open_node *closed)
{
    uint32_t node = append_node(&build->tree, build->view->frame_count, closed->node);
    for (uint32_t side = 0; side < VIEW_SIDE_COUNT; side++) {
        if (build->tree.self[side])
            add_self(&build->tree, node, side, closed->hidden_value[side]);
    }
    uint64_t count = closed->hidden_count;
    build->tree.hidden[node] = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    build->flame->cut_count++;
    build->flame->cut_hidden_count += count;
}

/* Removes a small node. It is the last node of the tree, because its descendants weigh no more
 * and were removed before. */
static void remove_closed_node(struct build *build, const struct open_node *closed)
{
    struct open_node *parent = &build->path[build->path_count - 1];
    struct tree *tree = &build->tree;
    assert(closed->node == tree->count - 1);
    tree->count--;
    parent->hidden_count += closed->hidden_count + 1;
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        int64_t self = tree->self[side] ? tree->self[side][closed->node] : 0;
        int64_t value = view_add(self, closed->hidden_value[side]);
        parent->hidden_value[side] = view_add(parent->hidden_value[side], value);
    }
}

static void close_node(struct build *build)
{
    const struct open_node *closed = &build->path[--build->path_count];
    bool is_root = build->path_count == 0;
    if (!build->least_kept)
        return;
    if (!is_root) {
        struct open_node *parent = &build->path[build->path_count - 1];
        parent->weight = add_weight(parent->weight, closed->weight);
    }
    if (closed->position != ON_PATH && node_bucket(build, closed) < build->least_kept)
        remove_closed_node(build, closed);
    else if (closed->hidden_count)
        append_other(build, closed);
}

static enum err_code build_tree(struct build *build, struct err *err)
{
    const struct view *view = build->view;
    struct tree *tree = &build->tree;
    open_root(build);
    build->path[0].node = append_node(tree, VIEW_ROOT_FRAME, 0);
    for (uint32_t i = 0; i < view->stack_count; i++) {
        uint32_t stack = build->order[i];
        uint64_t count;
        if (i % VIEW_CHECK_STEPS == 0 && view_check_cpu(view, err))
            return err->code;
        const uint32_t *frames = stack_frames(view, stack, &count);
        uint64_t shared = shared_depth(build, frames, count);
        while (build->path_count > shared + 1)
            close_node(build);
        while (build->path_count <= count) {
            struct open_node *parent = &build->path[build->path_count - 1];
            uint32_t frame = frames[build->path_count - 1];
            uint32_t node = append_node(tree, frame, parent->node);
            enum node_position position = child_position(build, frame);
            build->path[build->path_count++] =
                (struct open_node){.node = node, .frame = frame, .position = position};
        }
        struct open_node *leaf = &build->path[count];
        leaf->weight = add_weight(leaf->weight, stack_weight(view, stack));
        add_self(tree, leaf->node, view->value_side[stack], view->values[stack]);
    }
    while (build->path_count)
        close_node(build);
    return ERR_NONE;
}

/* The number of nodes of the whole tree; also finds max_depth. */
static uint64_t count_nodes(struct build *build)
{
    const struct view *view = build->view;
    const uint32_t *previous = NULL;
    uint64_t previous_count = 0, nodes = 1;
    for (uint32_t i = 0; i < view->stack_count; i++) {
        uint64_t count, shared = 0;
        const uint32_t *frames = stack_frames(view, build->order[i], &count);
        while (shared < count && shared < previous_count && frames[shared] == previous[shared])
            shared++;
        nodes += count - shared;
        previous = frames;
        previous_count = count;
        if (count > build->max_depth)
            build->max_depth = count;
    }
    return nodes;
}

/* frame and self become arrays of the flame, so they are in its arena; the rest is scratch (see
 * write_flame). */
static void allocate_tree(struct build *build, uint64_t capacity)
{
    struct tree *tree = &build->tree;
    tree->frame = arena_new_raw(build->arena, uint32_t, (size_t)capacity);
    tree->parent = arena_new_raw(build->scratch, uint32_t, (size_t)capacity);
    tree->self[VIEW_SIDE_B] = arena_new_raw(build->arena, int64_t, (size_t)capacity);
    if (build->view->is_diff)
        tree->self[VIEW_SIDE_A] = arena_new_raw(build->arena, int64_t, (size_t)capacity);
    if (build->least_kept)
        tree->hidden = arena_new_raw(build->scratch, uint32_t, (size_t)capacity);
}

/* ---- sorting siblings by value ---- */

static int64_t *sum_subtrees(struct arena *arena, const struct tree *tree, const int64_t *self)
{
    int64_t *cum = arena_new_raw(arena, int64_t, tree->count);
    memcpy(cum, self, tree->count * sizeof(*cum));
    for (uint32_t i = tree->count - 1; i > 0; i--)
        cum[tree->parent[i]] = view_add(cum[tree->parent[i]], cum[i]);
    return cum;
}

/* Writes values to their new positions in to, and returns to. */
static int64_t *scatter(const int64_t *values, const uint32_t *new_index, uint32_t count,
                        int64_t *to)
{
    for (uint32_t i = 0; i < count; i++)
        to[new_index[i]] = values[i];
    return to;
}

static int64_t *scatter_copy(struct arena *arena, const int64_t *values, const uint32_t *new_index,
                             uint32_t count)
{
    return scatter(values, new_index, count, arena_new_raw(arena, int64_t, count));
}

static void add_cut_value(struct flame *flame, const int64_t *self, uint32_t node)
{
    uint64_t value = self ? magnitude(self[node]) : 0;
    flame->cut_value = view_add(flame->cut_value, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void write_cuts(struct build *build, const uint32_t *new_index)
{
    struct flame *flame = build->flame;
    if (!flame->cut_count)
        return;
    uint32_t *hidden_by_index = arena_new_raw(build->scratch, uint32_t, flame->node_count);
    for (uint32_t i = 0; i < flame->node_count; i++)
        hidden_by_index[new_index[i]] = build->tree.hidden[i];
    uint32_t *node = arena_new_raw(build->arena, uint32_t, flame->cut_count);
    uint32_t *hidden = arena_new_raw(build->arena, uint32_t, flame->cut_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < flame->node_count; i++) {
        if (!hidden_by_index[i])
            continue;
        node[count] = i;
        hidden[count++] = hidden_by_index[i];
        add_cut_value(flame, flame->base_self, i);
        add_cut_value(flame, flame->node_self, i);
    }
    flame->cut_node = node;
    flame->cut_hidden = hidden;
}

/*
 * Scales the values of side B. Rounding each value separately would add up errors, so each prefix
 * sum is scaled and rounded, and a node gets the difference of two of them. A subtree is
 * contiguous, so its total is exact to 1, however many nodes it has. Example: with a scale of 1/3,
 * the values 1 1 1 have the scaled prefix sums 0 1 1, so they become 0 1 0.
 */
static void scale_self(const struct view *view, int64_t *self, uint32_t count)
{
    int64_t sum = 0, before = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += self[i];
        int64_t scaled = view_scaled(view, VIEW_SIDE_B, sum);
        self[i] = scaled - before;
        before = scaled;
    }
}

/* Writes the final arrays. The first access to fresh memory costs more than the work here, so
 * arrays that are no longer needed are overwritten. */
static void write_flame(struct build *build)
{
    const struct tree *tree = &build->tree;
    struct flame *flame = build->flame;
    int64_t *unscaled = NULL;
    if (build->view->scale != 1) {
        unscaled = arena_new_raw(build->scratch, int64_t, tree->count);
        memcpy(unscaled, tree->self[VIEW_SIDE_B], tree->count * sizeof(*unscaled));
        scale_self(build->view, tree->self[VIEW_SIDE_B], tree->count);
    }
    int64_t *cum[VIEW_SIDE_COUNT] = {0};
    for (int side = 0; side < VIEW_SIDE_COUNT; side++) {
        if (tree->self[side])
            cum[side] = sum_subtrees(build->scratch, tree, tree->self[side]);
    }
    uint32_t count = tree->count;
    uint32_t *frame = arena_new_raw(build->arena, uint32_t, count);
    const uint32_t *new_index = flame_order(build->scratch, tree->parent, count, cum, frame);
    for (uint32_t i = 0; i < count; i++)
        frame[new_index[i]] = tree->frame[i];
    uint32_t *parent = tree->frame;
    for (uint32_t i = 0; i < count; i++)
        parent[new_index[i]] = new_index[tree->parent[i]];
    flame->node_count = count;
    flame->node_frame = frame;
    flame->node_parent = parent;
    flame->node_self = scatter_copy(build->arena, tree->self[VIEW_SIDE_B], new_index, count);
    flame->node_cum = scatter(cum[VIEW_SIDE_B], new_index, count, tree->self[VIEW_SIDE_B]);
    if (unscaled)
        flame->unscaled_self = scatter_copy(build->arena, unscaled, new_index, count);
    if (cum[VIEW_SIDE_A]) {
        flame->base_self = scatter_copy(build->arena, tree->self[VIEW_SIDE_A], new_index, count);
        flame->base_cum = scatter(cum[VIEW_SIDE_A], new_index, count, tree->self[VIEW_SIDE_A]);
    }
    write_cuts(build, new_index);
}

static void write_frames(struct build *build)
{
    const struct view *view = build->view;
    struct flame *flame = build->flame;
    flame->frames = view->frames;
    flame->frame_count = view->frame_count;
    if (!flame->cut_count)
        return;
    struct frame *frames = arena_new(build->arena, struct frame, (size_t)view->frame_count + 1);
    memcpy(frames, view->frames, view->frame_count * sizeof(*frames));
    frames[view->frame_count] = (struct frame){.name = SPAN_LITERAL("other"), .flags = FRAME_OTHER};
    flame->frames = frames;
    flame->frame_count++;
}

static enum err_code start_build(struct build *build, const uint64_t *path,
                                 uint64_t *ret_node_count, struct err *err)
{
    const struct view *view = build->view;
    enum err_code code = stack_sort(build->scratch, view, &build->order, err);
    if (code)
        return code;
    *ret_node_count = count_nodes(build);
    if (build->max_depth >= UINT32_MAX - build->max_nodes)
        return err_set(err, ERR_TOO_LARGE, "a stack is too deep for a flame graph");
    if (!path)
        return ERR_NONE;
    code = flame_root_find(view, build->order, build->max_depth, *path, &build->root, err);
    if (code)
        return code;
    build->flame->root_path = flame_root_path(view, &build->root);
    return ERR_NONE;
}

static enum err_code create_flame(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                  const uint64_t *path, const struct flame **ret_flame,
                                  struct err *err)
{
    arena_auto scratch = arena_create();
    struct build build = {.arena = arena, .scratch = scratch, .view = view};
    build.max_nodes = max_nodes ? max_nodes : FLAME_NODES_DEFAULT;
    if (build.max_nodes < FLAME_NODES_MIN)
        build.max_nodes = FLAME_NODES_MIN;
    build.flame = arena_new(arena, struct flame, 1);
    build.flame->view = view;
    uint64_t node_count;
    enum err_code code = start_build(&build, path, &node_count, err);
    if (code)
        return code;
    build.path = arena_new_raw(scratch, struct open_node, (size_t)build.max_depth + 2);
    if (path || node_count > build.max_nodes) {
        code = choose_limit(&build, err);
        if (code)
            return code;
        /* Space beyond max_nodes, per level of the deepest stack: nodes of the path, which
         * always stay; an "other" child of each; and open nodes that are removed later. */
        node_count = (uint64_t)build.max_nodes + 3 * (build.max_depth + 2);
    }
    allocate_tree(&build, node_count);
    code = build_tree(&build, err);
    if (code)
        return code;
    write_frames(&build);
    write_flame(&build);
    *ret_flame = build.flame;
    return ERR_NONE;
}

enum err_code flame_create(struct arena *arena, const struct view *view, uint32_t max_nodes,
                           const struct flame **ret_flame, struct err *err)
{
    return create_flame(arena, view, max_nodes, NULL, ret_flame, err);
}

enum err_code flame_create_below(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                 uint64_t path, const struct flame **ret_flame, struct err *err)
{
    return create_flame(arena, view, max_nodes, &path, ret_flame, err);
}

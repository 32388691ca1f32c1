/*
 * The stacks are sorted (stack_sort.h), so that one walk from left to right meets the tree in
 * preorder: what a stack shares with the one before it is open already, the rest is new. A second
 * step sorts siblings by value and writes the arrays again in that order.
 *
 * A tree that is too large is walked twice: the first walk only weighs its nodes, to find how small
 * a node must be to go; the second leaves those out as it closes them. So memory follows max_nodes
 * and the deepest stack, not the size of the whole tree.
 */
#include "lib/profile/report/flame.h"

#include "lib/base/mem.h"
#include "lib/profile/report/flame_order.h"
#include "lib/profile/report/flame_root.h"
#include "lib/profile/report/stack_sort.h"

#include <assert.h>
#include <math.h>

/* Weights fall into buckets with 5 bits behind the leading one: 3 % apart. */
enum { BUCKET_BITS = 5, BUCKET_COUNT = 64 << BUCKET_BITS };

/* A tree under construction; nodes in the order of their frames. */
struct tree {
    uint32_t *frame;
    uint32_t *parent;
    int64_t *self[VIEW_SIDE_COUNT]; /* side A only in a diff */
    uint32_t *hidden;               /* nodes that an "other" stands for; NULL without a cut */
    uint32_t count;
};

/* Where a node is, seen from the one that the tree is made for (the root, unless one is named). */
enum place { ON_THE_WAY, BELOW, BESIDE };

/* A node on the way from the root to where the walk is. */
struct open_node {
    uint32_t node;
    uint32_t frame;
    enum place place;
    uint64_t weight;       /* sum of the magnitudes below, and of its own */
    uint32_t least_bucket; /* of its children; BUCKET_COUNT: none */
    uint64_t hidden_count;
    int64_t hidden_value[VIEW_SIDE_COUNT];
};

struct build {
    struct arena *arena;
    struct arena *scratch;
    const struct view *view;
    uint32_t *order; /* of stacks */
    struct flame_root root;
    struct tree tree;
    struct open_node *path;
    uint64_t path_count;
    uint64_t max_depth;
    uint32_t max_nodes;
    uint32_t least_kept; /* bucket; 0 keeps all */
    uint64_t *kept_by_bucket;
    int64_t *others_by_bucket; /* differences */
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
 * How much a stack counts when nodes are left out. Whichever side is to be larger than the other is
 * enlarged, and none made smaller: of a thousand stacks that count nothing each, none would stay.
 */
static uint64_t weight_of(const struct view *view, uint32_t stack)
{
    uint64_t size = magnitude(view->values[stack]);
    double scale = fabs(view->scale);
    enum view_side enlarged = scale < 1 ? VIEW_SIDE_A : VIEW_SIDE_B;
    if (scale == 1 || scale == 0 || view->value_side[stack] != enlarged)
        return size;
    double weight = (double)size * (scale < 1 ? 1 / scale : scale);
    return weight < 0x1p63 ? (uint64_t)weight : UINT64_C(1) << 63;
}

static uint32_t bucket_of(uint64_t weight)
{
    if (weight < (1 << BUCKET_BITS))
        return (uint32_t)weight;
    unsigned top = 63 - (unsigned)__builtin_clzll(weight);
    return (top - BUCKET_BITS + 1) << BUCKET_BITS |
           (uint32_t)(weight >> (top - BUCKET_BITS) & ((1 << BUCKET_BITS) - 1));
}

/* ---- the walk ---- */

static const uint32_t *stack_frames(const struct view *view, uint32_t stack, uint64_t *ret_count)
{
    *ret_count = view->stack_start[stack + 1] - view->stack_start[stack];
    return view->entries + view->stack_start[stack];
}

/* How much of a stack is open already. */
static uint64_t shared_depth(const struct build *build, const uint32_t *frames, uint64_t count)
{
    uint64_t depth = 0;
    while (depth < count && depth + 1 < build->path_count &&
           build->path[depth + 1].frame == frames[depth])
        depth++;
    return depth;
}

/* What is beside the way goes first, the way itself never. */
static uint32_t bucket_for(const struct build *build, const struct open_node *closed)
{
    if (closed->place == BESIDE)
        return 0;
    uint32_t bucket = bucket_of(closed->weight);
    if (build->root.depth == 0)
        return bucket;
    if (closed->place == ON_THE_WAY)
        return BUCKET_COUNT - 1;
    return bucket ? bucket : 1;
}

static enum place place_of_child(const struct build *build, uint32_t frame)
{
    const struct open_node *parent = &build->path[build->path_count - 1];
    uint64_t depth = build->path_count - 1;
    if (parent->place != ON_THE_WAY)
        return parent->place;
    if (depth == build->root.depth)
        return BELOW;
    return build->root.frames[depth] == frame ? ON_THE_WAY : BESIDE;
}

static void add_self(struct tree *tree, uint32_t node, uint32_t side, int64_t value)
{
    tree->self[side][node] = view_add(tree->self[side][node], value);
}

/* ---- weighing ---- */

static void weigh_closed(struct build *build)
{
    const struct open_node *closed = &build->path[--build->path_count];
    uint32_t bucket = bucket_for(build, closed);
    build->kept_by_bucket[bucket]++;
    /* For limits in (least_bucket, bucket] the node stays and gets an "other" child. */
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

static enum err_code weigh_all(struct build *build, struct err *err)
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
            weigh_closed(build);
        while (build->path_count <= count) {
            uint32_t frame = frames[build->path_count - 1];
            enum place place = place_of_child(build, frame);
            build->path[build->path_count++] =
                (struct open_node){.frame = frame, .place = place, .least_bucket = BUCKET_COUNT};
        }
        struct open_node *leaf = &build->path[count];
        leaf->weight = add_weight(leaf->weight, weight_of(view, build->order[i]));
    }
    while (build->path_count)
        weigh_closed(build);
    return ERR_NONE;
}

/* The smallest bucket such that what is in it and above, with the "other" children, fits. */
static enum err_code choose_limit(struct build *build, struct err *err)
{
    build->kept_by_bucket = arena_new(build->scratch, uint64_t, BUCKET_COUNT + 1);
    build->others_by_bucket = arena_new(build->scratch, int64_t, BUCKET_COUNT + 2);
    enum err_code code = weigh_all(build, err);
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

/* ---- building ---- */

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

/* A small node is the last one there is, since all below it is smaller still: take it back. */
static void hide_closed(struct build *build, const struct open_node *closed)
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
    if (closed->place != ON_THE_WAY && bucket_for(build, closed) < build->least_kept)
        hide_closed(build, closed);
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
            enum place place = place_of_child(build, frame);
            build->path[build->path_count++] =
                (struct open_node){.node = node, .frame = frame, .place = place};
        }
        struct open_node *leaf = &build->path[count];
        leaf->weight = add_weight(leaf->weight, weight_of(view, stack));
        add_self(tree, leaf->node, view->value_side[stack], view->values[stack]);
    }
    while (build->path_count)
        close_node(build);
    return ERR_NONE;
}

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

/* What the flame's own arrays are made of is its own, the rest is scratch (write_flame). */
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

/* ---- siblings by value ---- */

static int64_t *sum_up(struct arena *arena, const struct tree *tree, const int64_t *self)
{
    int64_t *cum = arena_new_raw(arena, int64_t, tree->count);
    memcpy(cum, self, tree->count * sizeof(*cum));
    for (uint32_t i = tree->count - 1; i > 0; i--)
        cum[tree->parent[i]] = view_add(cum[tree->parent[i]], cum[i]);
    return cum;
}

static int64_t *scatter(const int64_t *values, const uint32_t *place, uint32_t count, int64_t *to)
{
    for (uint32_t i = 0; i < count; i++)
        to[place[i]] = values[i];
    return to;
}

static int64_t *scatter_anew(struct arena *arena, const int64_t *values, const uint32_t *place,
                             uint32_t count)
{
    return scatter(values, place, count, arena_new_raw(arena, int64_t, count));
}

static void add_cut_value(struct flame *flame, const int64_t *self, uint32_t node)
{
    uint64_t value = self ? magnitude(self[node]) : 0;
    flame->cut_value = view_add(flame->cut_value, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void write_cuts(struct build *build, const uint32_t *place)
{
    struct flame *flame = build->flame;
    if (!flame->cut_count)
        return;
    uint32_t *hidden_by_place = arena_new_raw(build->scratch, uint32_t, flame->node_count);
    for (uint32_t i = 0; i < flame->node_count; i++)
        hidden_by_place[place[i]] = build->tree.hidden[i];
    uint32_t *node = arena_new_raw(build->arena, uint32_t, flame->cut_count);
    uint32_t *hidden = arena_new_raw(build->arena, uint32_t, flame->cut_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < flame->node_count; i++) {
        if (!hidden_by_place[i])
            continue;
        node[count] = i;
        hidden[count++] = hidden_by_place[i];
        add_cut_value(flame, flame->base_self, i);
        add_cut_value(flame, flame->node_self, i);
    }
    flame->cut_node = node;
    flame->cut_hidden = hidden;
}

/*
 * What stands in front of a node and with it, scaled, less what stands in front of it, scaled: as a
 * subtree has its nodes one after the other, its sum is right to 1, however many nodes it has.
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

/* Touching memory for the first time costs more than what is done with it here: what is read for
 * the last time is written over. */
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
            cum[side] = sum_up(build->scratch, tree, tree->self[side]);
    }
    uint32_t count = tree->count;
    uint32_t *frame = arena_new_raw(build->arena, uint32_t, count);
    const uint32_t *place = flame_order(build->scratch, tree->parent, count, cum, frame);
    for (uint32_t i = 0; i < count; i++)
        frame[place[i]] = tree->frame[i];
    uint32_t *parent = tree->frame;
    for (uint32_t i = 0; i < count; i++)
        parent[place[i]] = place[tree->parent[i]];
    flame->node_count = count;
    flame->node_frame = frame;
    flame->node_parent = parent;
    flame->node_self = scatter_anew(build->arena, tree->self[VIEW_SIDE_B], place, count);
    flame->node_cum = scatter(cum[VIEW_SIDE_B], place, count, tree->self[VIEW_SIDE_B]);
    if (unscaled)
        flame->unscaled_self = scatter_anew(build->arena, unscaled, place, count);
    if (cum[VIEW_SIDE_A]) {
        flame->base_self = scatter_anew(build->arena, tree->self[VIEW_SIDE_A], place, count);
        flame->base_cum = scatter(cum[VIEW_SIDE_A], place, count, tree->self[VIEW_SIDE_A]);
    }
    write_cuts(build, place);
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
    if (!code)
        build->flame->root_path = flame_root_path(view, &build->root);
    return code;
}

static enum err_code create(struct arena *arena, const struct view *view, uint32_t max_nodes,
                            const uint64_t *path, const struct flame **ret_flame, struct err *err)
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
        /* The way is kept whatever it costs, with an "other" for each of its nodes. */
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
    return create(arena, view, max_nodes, NULL, ret_flame, err);
}

enum err_code flame_create_below(struct arena *arena, const struct view *view, uint32_t max_nodes,
                                 uint64_t path, const struct flame **ret_flame, struct err *err)
{
    return create(arena, view, max_nodes, &path, ret_flame, err);
}

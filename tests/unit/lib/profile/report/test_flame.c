#include "tests/unit/lib/profile/reports.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/report/flame.h"
#include "lib/profile/report/flame_zoom.h"
#include "lib/profile/report/path_hash.h"

#include <stdlib.h>

static const struct flame *flame_of(struct arena *arena, const struct view *view,
                                    uint32_t max_nodes)
{
    const struct flame *flame = NULL;
    struct err err;
    assert_int_equal(flame_create(arena, view, max_nodes, &flame, &err), ERR_NONE);
    return flame;
}

/* One line per node, with a dot for each level: "..name self cum\n". */
static void assert_flame(const struct flame *flame, const char *expected)
{
    arena_auto arena = arena_create();
    uint32_t *depth = arena_new(arena, uint32_t, flame->node_count);
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (uint32_t i = 0; i < flame->node_count; i++) {
        depth[i] = i ? depth[flame->node_parent[i]] + 1 : 0;
        for (uint32_t j = 0; j < depth[i]; j++)
            buf_append_byte(&text, '.');
        buf_append_span(&text, flame->frames[flame->node_frame[i]].name);
        if (flame->base_self)
            buf_printf(&text, " %lld %lld", (long long)flame->base_self[i],
                       (long long)flame->base_cum[i]);
        buf_printf(&text, " %lld %lld\n", (long long)flame->node_self[i],
                   (long long)flame->node_cum[i]);
    }
    buf_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
}

/* Checks the invariants of every flame graph. */
static void assert_sound(const struct flame *flame)
{
    arena_auto arena = arena_create();
    int64_t *sum = arena_new(arena, int64_t, flame->node_count);
    uint32_t *last_child = arena_new(arena, uint32_t, flame->node_count);
    assert_int_equal(flame->node_parent[0], 0);
    for (uint32_t i = flame->node_count; i-- > 0;) {
        sum[i] += flame->node_self[i];
        assert_true(sum[i] == flame->node_cum[i]);
        if (i)
            sum[flame->node_parent[i]] += sum[i];
    }
    assert_true(sum[0] == flame->view->kept[VIEW_SIDE_B]);
    for (uint32_t i = 1; i < flame->node_count; i++) {
        uint32_t parent = flame->node_parent[i], before = last_child[parent];
        assert_true(parent < i && flame->node_frame[i] < flame->frame_count);
        /* In preorder, the parent is the previous node or an ancestor of it. */
        uint32_t at = i - 1;
        while (at > parent)
            at = flame->node_parent[at];
        assert_int_equal(at, parent);
        if (before && !flame->base_cum)
            assert_true(flame->node_cum[before] >= flame->node_cum[i]);
        last_child[parent] = i;
    }
}

static void stacks_share_their_beginnings(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = folded_view(arena, "main;a;x 1\nmain;b 5\nmain;a 2\nmain;a;y 4\n");
    const struct flame *flame = flame_of(arena, view, 0);
    assert_sound(flame);
    assert_flame(flame, "root 0 12\n.main 0 12\n..a 2 7\n...y 4 4\n...x 1 1\n..b 5 5\n");
}

static void an_empty_view_is_a_root(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct filter_rule rule = {FILTER_FOCUS, SPAN_LITERAL("nothing")};
    struct view_options options = {0};
    struct err err;
    assert_int_equal(filter_create(arena, &rule, 1, &options.filter, &err), ERR_NONE);
    const struct view *view = view_of(arena, folded_profile(arena, "a;b 1\n"), &options);
    assert_flame(flame_of(arena, view, 0), "root 0 0\n");
}

static void recursion_nests(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    assert_flame(flame_of(arena, folded_view(arena, "f;f;f 2\nf 1\n"), 0),
                 "root 0 3\n.f 1 3\n..f 0 2\n...f 2 2\n");
}

static void a_diff_is_ordered_by_the_larger_side(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view =
        folded_diff(arena, "m;gone 9\nm;same 5\n", "m;same 5\nm;new 7\n", DIFF_ABSOLUTE);
    assert_flame(flame_of(arena, view, 0),
                 "root 0 14 0 12\n.m 0 14 0 12\n..gone 9 9 0 0\n..new 0 0 7 7\n..same 5 5 5 5\n");
}

/* "m;big" is half of b, in parts that are each less than 1 after scaling to a. */
static void a_normalised_diff_is_cut_by_what_is_large(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto many;
    buf_init(&many, 1 << 16);
    for (int i = 0; i < 1000; i++)
        buf_printf(&many, "m;big;f%d 1\nm;g%d 1\n", i, i % 200);
    buf_append_byte(&many, '\0');
    const struct view *view =
        folded_diff(arena, "m;x 100\n", (const char *)many.data, DIFF_NORMALISED);
    const struct flame *flame = flame_of(arena, view, 100);
    assert_in_range(flame->node_count, 5, 100);
    assert_true(flame->cut_hidden_count > 0);
    bool has_big = false;
    for (uint32_t i = 0; i < flame->node_count; i++)
        if (span_equal_text(flame->frames[flame->node_frame[i]].name, "big")) {
            has_big = true;
            assert_in_range(flame->node_cum[i], 49, 51);
        }
    assert_true(has_big);
}

static const struct profile *random_profile(struct arena *arena, uint32_t stacks, uint32_t depth,
                                            uint32_t fan, bool has_negatives)
{
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    uint32_t stack[64];
    srandom(stacks + depth * 1000 + fan);
    for (uint32_t i = 0; i < stacks; i++) {
        uint32_t count = (uint32_t)random() % depth + 1;
        for (uint32_t j = 0; j < count; j++) {
            char name[16];
            snprintf(name, sizeof(name), "f%ld", random() % fan);
            struct profile_builder_frame frame = {.name = span_text(name)};
            stack[count - 1 - j] = profile_builder_frame(builder, &frame);
        }
        int64_t value = 1 + random() % 100 - (has_negatives ? 50 : 0);
        profile_builder_add_sample(builder, stack, count, &value, NULL, 0);
    }
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static void random_trees_keep_the_invariants(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 24; round++) {
        arena_auto arena = arena_create();
        const struct view *view = view_of(
            arena, random_profile(arena, 3000, 1 + round * 2, 2 + round * 5, round % 2), NULL);
        const struct flame *flame = flame_of(arena, view, 0);
        assert_int_equal(flame->cut_count, 0);
        assert_sound(flame);
    }
}

/* The path of a node as a number; equal for equal paths. */
static uint64_t path_hash(const struct flame *flame, uint32_t node)
{
    uint64_t hash = 1;
    for (; node; node = flame->node_parent[node])
        hash = hash * 1099511628211u + flame->node_frame[node] + 7;
    return hash;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void no_two_nodes_have_the_same_path(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = view_of(arena, random_profile(arena, 20000, 12, 6, false), NULL);
    const struct flame *flame = flame_of(arena, view, 0);
    uint64_t *hashes = arena_new(arena, uint64_t, flame->node_count);
    for (uint32_t i = 0; i < flame->node_count; i++)
        hashes[i] = path_hash(flame, i);
    qsort(hashes, flame->node_count, sizeof(*hashes), compare_u64);
    for (uint32_t i = 1; i < flame->node_count; i++)
        assert_true(hashes[i] != hashes[i - 1]);
}

static void a_large_tree_is_cut_and_marked(void **state)
{
    (void)state;
    for (uint32_t max_nodes = 100; max_nodes <= 25600; max_nodes *= 4) {
        arena_auto arena = arena_create();
        const struct view *view =
            view_of(arena, random_profile(arena, 8000, 20, 50, max_nodes == 400), NULL);
        const struct flame *whole = flame_of(arena, view, 0);
        const struct flame *flame = flame_of(arena, view, max_nodes);
        assert_true(flame->node_count <= max_nodes && flame->node_count > max_nodes / 20);
        assert_sound(flame);
        assert_true(flame->cut_count > 0);
        uint64_t hidden = 0;
        for (uint32_t i = 0; i < flame->cut_count; i++) {
            const struct frame *frame = &flame->frames[flame->node_frame[flame->cut_node[i]]];
            assert_true(frame->flags & FRAME_OTHER);
            assert_true(i == 0 || flame->cut_node[i] > flame->cut_node[i - 1]);
            hidden += flame->cut_hidden[i];
        }
        assert_int_equal(hidden, flame->cut_hidden_count);
        assert_int_equal(whole->node_count, flame->node_count - flame->cut_count + hidden);
    }
}

static struct path_hash path_of(const struct flame *flame, uint32_t node)
{
    if (node == 0)
        return (struct path_hash){0};
    return path_hash_child(path_of(flame, flame->node_parent[node]),
                           path_hash_frame(&flame->frames[flame->node_frame[node]],
                                           flame->view->group, PATH_HASH_OF_FRAMES));
}

static uint32_t node_at(const struct flame *flame, uint64_t path)
{
    for (uint32_t i = 1; i < flame->node_count; i++) {
        if (path_hash_u64(path_of(flame, i)) == path)
            return i;
    }
    fail_msg("no node has that path");
    return 0;
}

static uint32_t end_of(const struct flame *flame, uint32_t node)
{
    uint32_t end = node + 1;
    while (end < flame->node_count && flame->node_parent[end] >= node)
        end++;
    return end;
}

/* Asserts that below, which was requested for node, has the values of the whole tree on the path to
 * node, and all nodes below it if these are at most 60, which always fit. */
static void assert_below(const struct flame *whole, const struct flame *below, uint32_t node)
{
    uint32_t at = node_at(below, path_hash_u64(path_of(whole, node)));
    uint32_t size = end_of(whole, node) - node;
    assert_sound(below);
    for (uint32_t old = node, new = at; old; old = whole->node_parent[old]) {
        assert_true(below->node_cum[new] == whole->node_cum[old]);
        new = below->node_parent[new];
    }
    if (size > 60)
        return;
    assert_int_equal(end_of(below, at) - at, size);
    for (uint32_t i = 0; i < size; i++) {
        assert_int_equal(below->node_frame[at + i], whole->node_frame[node + i]);
        assert_true(below->node_cum[at + i] == whole->node_cum[node + i]);
    }
}

/* The path of main and a frame below it. */
static uint64_t path_below_main(struct frame frame, enum view_group group, enum path_hash_form form)
{
    const struct frame main_frame = {.name = SPAN_LITERAL("main")};
    struct path_hash path =
        path_hash_child((struct path_hash){0}, path_hash_frame(&main_frame, group, form));
    return path_hash_u64(path_hash_child(path, path_hash_frame(&frame, group, form)));
}

static struct frame at_address(const char *name, uint64_t address, const char *mapping)
{
    return (struct frame){
        .name = span_text(name), .address = address, .mapping = span_text(mapping)};
}

/* The numbers are those of web/test/model/tree/flame.test.ts. */
static void an_address_is_the_name_of_a_frame_without_symbols(void **state)
{
    (void)state;
    const enum view_group group = VIEW_BY_ADDRESS;
    const uint64_t path = path_below_main(at_address("0x4f2a10 main.run", 0x4f2a10, "/bin/app"),
                                          group, PATH_HASH_OF_FRAMES);
    assert_int_equal(path, UINT64_C(0xeed00152f71ad20e));
    assert_true(path_below_main(at_address("0x4f2a10 <unknown>", 0x4f2a10, "/bin/app"), group,
                                PATH_HASH_OF_FRAMES) == path);
    assert_true(path_below_main(at_address("0x4f2a10 main.run", 0x4f2a10, "/bin/b"), group,
                                PATH_HASH_OF_FRAMES) != path);
    assert_true(path_below_main(at_address("0x4f2a11 main.run", 0x4f2a11, "/bin/app"), group,
                                PATH_HASH_OF_FRAMES) != path);
    const uint64_t old = UINT64_C(0x54da7666f4231bb3);
    for (int by = 0; by <= VIEW_BY_LABEL; by++)
        assert_int_equal(path_below_main(at_address("0x4f2a10 main.run", 1, "/bin/app"),
                                         (enum view_group)by, PATH_HASH_OF_NAMES),
                         old);
}

/* Like web/test/model/tree/flame.test.ts. */
static void a_path_from_before_symbolization_is_found(void **state)
{
    (void)state;
    for (int by = 0; by <= VIEW_BY_ADDRESS; by++) {
        const enum view_group group = (enum view_group)by;
        const bool has_address = group == VIEW_BY_ADDRESS;
        struct frame raw = at_address("[app]", 0, "/usr/bin/app");
        struct frame named = at_address("run", 0, "/usr/bin/app");
        named.file = SPAN_LITERAL("run.c");
        named.line = 7;
        if (has_address) {
            raw = at_address("0x20 [app]", 0x20, "/usr/bin/app");
            named = at_address("0x20 run", 0x20, "/usr/bin/app");
        }
        const struct path_hash old = path_hash_frame(&raw, group, PATH_HASH_OF_FRAMES);
        const struct path_hash hash = path_hash_frame(&named, group, PATH_HASH_OF_RAW);
        assert_true(path_hash_u64(old) == path_hash_u64(hash));
        struct frame inlined = named;
        inlined.flags = FRAME_INLINED;
        assert_true(path_hash_u64(path_hash_step(old, hash, &inlined, PATH_HASH_OF_RAW)) ==
                    path_hash_u64(old));
        assert_true(path_hash_u64(path_hash_step(old, hash, &inlined, PATH_HASH_OF_FRAMES)) !=
                    path_hash_u64(old));
    }
    const struct frame kernel = at_address("do_idle", 0, "[kernel.kallsyms]");
    assert_true(path_hash_u64(path_hash_frame(&kernel, VIEW_BY_FUNCTION, PATH_HASH_OF_RAW)) ==
                path_hash_u64(path_hash_frame(&kernel, VIEW_BY_FUNCTION, PATH_HASH_OF_FRAMES)));
}

static void siblings_with_the_same_name_have_different_paths(void **state)
{
    (void)state;
    const struct frame at_12 = {
        .name = SPAN_LITERAL("run"), .file = SPAN_LITERAL("a.go"), .line = 12};
    struct frame at_300 = at_12, elsewhere = at_12;
    at_300.line = 300;
    elsewhere.file = SPAN_LITERAL("b.go");
    const uint64_t path = path_below_main(at_12, VIEW_BY_LINE, PATH_HASH_OF_FRAMES);
    assert_int_equal(path, UINT64_C(0x4429db708180e364));
    assert_true(path_below_main(at_12, VIEW_BY_ADDRESS, PATH_HASH_OF_FRAMES) == path);
    assert_true(path_below_main(at_300, VIEW_BY_LINE, PATH_HASH_OF_FRAMES) != path);
    assert_true(path_below_main(elsewhere, VIEW_BY_LINE, PATH_HASH_OF_FRAMES) != path);
    assert_true(path_below_main(at_300, VIEW_BY_FUNCTION, PATH_HASH_OF_FRAMES) ==
                path_below_main(at_12, VIEW_BY_LABEL, PATH_HASH_OF_FRAMES));
    const struct frame alpha = {.name = SPAN_LITERAL("0x1f alpha")};
    const struct frame beta = {.name = SPAN_LITERAL("0x1f beta")};
    for (int by = 0; by <= VIEW_BY_LABEL; by++)
        assert_true(path_below_main(alpha, (enum view_group)by, PATH_HASH_OF_FRAMES) !=
                    path_below_main(beta, (enum view_group)by, PATH_HASH_OF_FRAMES));
}

/* "main" calls "run" in two lines of a file and in one of another. */
static const struct profile *same_names(struct arena *arena)
{
    static const struct {
        const char *file;
        int64_t line;
        int64_t value;
    } places[] = {{"a.go", 12, 30}, {"a.go", 300, 20}, {"b.go", 12, 10}};
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct profile_builder_frame run = {.name = SPAN_LITERAL("run"),
                                                  .filename = span_text(places[i].file),
                                                  .line = places[i].line},
                                           base = {.name = SPAN_LITERAL("main")};
        const uint32_t stack[] = {profile_builder_frame(builder, &run),
                                  profile_builder_frame(builder, &base)};
        profile_builder_add_sample(builder, stack, 2, &places[i].value, NULL, 0);
    }
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static uint32_t node_of(const struct flame *flame, uint64_t path)
{
    uint32_t node = UINT32_MAX;
    struct err err;
    assert_int_equal(flame_find_path(flame, path, &node, &err), ERR_NONE);
    return node;
}

/* With lines, each node is found by its own path; by names only, the first node with these names
 * is found. */
static void each_sibling_is_found(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view_options options = {.group_by = SPAN_LITERAL("line")};
    const struct view *view = view_of(arena, same_names(arena), &options);
    const struct flame *flame = flame_of(arena, view, 0);
    assert_int_equal(flame->node_count, 5);
    struct err err;
    const struct flame *below;
    for (uint32_t node = 1; node < flame->node_count; node++) {
        uint64_t path = path_hash_u64(path_of(flame, node));
        assert_int_equal(node_of(flame, path), node);
        assert_int_equal(flame_create_below(arena, view, 100, path, &below, &err), ERR_NONE);
        assert_below(flame, below, node);
    }
    const struct frame run = {.name = SPAN_LITERAL("run")};
    uint64_t old = path_below_main(run, VIEW_BY_LINE, PATH_HASH_OF_NAMES);
    uint32_t first = node_of(flame, old);
    assert_true(first && flame->node_cum[first] == 30);
    assert_int_equal(flame_create_below(arena, view, 100, old, &below, &err), ERR_NONE);
}

static void a_subtree_can_be_requested(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct err err;
    const struct view *view = view_of(arena, random_profile(arena, 8000, 20, 50, true), NULL);
    const struct flame *whole = flame_of(arena, view, 0), *below;
    for (uint32_t node = 1; node < whole->node_count; node += 1 + whole->node_count / 60) {
        uint64_t path = path_hash_u64(path_of(whole, node));
        assert_int_equal(flame_create_below(arena, view, 100, path, &below, &err), ERR_NONE);
        assert_true(below->node_count <= 100 + 2 * 21);
        assert_below(whole, below, node);
    }
    assert_int_equal(flame_create_below(arena, view, 100, 1, &below, &err), ERR_NOT_FOUND);
}

static void the_zoom_path_is_never_cut(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct err err;
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 300; i++)
        buf_printf(&text, "%sf%d", i ? ";" : "", i);
    buf_append_text(&text, ";a 1\n");
    for (int i = 0; i < 300; i++)
        buf_printf(&text, "f%d;large%d 1000\n", 0, i);
    buf_append_byte(&text, '\0');
    const struct view *view = folded_view(arena, (const char *)text.data);
    const struct flame *whole = flame_of(arena, view, 0), *below;
    uint32_t node = 1;
    while (!span_equal_text(whole->frames[whole->node_frame[node]].name, "a"))
        node++;
    uint64_t path = path_hash_u64(path_of(whole, node));
    assert_int_equal(flame_create_below(arena, view, 100, path, &below, &err), ERR_NONE);
    assert_below(whole, below, node);
    assert_int_equal(below->cut_hidden_count, 300);
}

/* Removed subtrees are small: no remaining one weighs less than a removed one, except for the 3 %
 * of a bucket. */
static void the_largest_subtrees_stay(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 2000; i++)
        buf_printf(&text, "m;small%d %d\n", i, 1 + i % 3);
    for (int i = 0; i < 40; i++)
        buf_printf(&text, "m;large%d;leaf %d\n", i, 1000 + i);
    buf_append_byte(&text, '\0');
    const struct view *view = folded_view(arena, (const char *)text.data);
    const struct flame *flame = flame_of(arena, view, 100);
    assert_sound(flame);
    assert_int_equal(flame->node_count, 2 + 40 * 2 + 1);
    assert_int_equal(flame->cut_count, 1);
    assert_int_equal(flame->cut_hidden[0], 2000);
    assert_true(flame->node_self[flame->cut_node[0]] == flame->cut_value);
}

/* No recursion on deep stacks: the test runs with a small stack. */
static void stacks_may_be_very_deep(void **state)
{
    (void)state;
    enum { DEPTH = 60000 };
    arena_auto arena = arena_create();
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    uint32_t *stack = arena_new(arena, uint32_t, DEPTH);
    for (uint32_t i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        struct profile_builder_frame frame = {.name = span_text(name)};
        uint32_t location = profile_builder_frame(builder, &frame);
        for (uint32_t j = i * 100; j < DEPTH; j++)
            stack[DEPTH - 1 - j] = location;
        const int64_t one = 1;
        profile_builder_add_sample(builder, stack, DEPTH, &one, NULL, 0);
    }
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    arena_on_destroy(arena, destroy_profile, profile);
    const struct view *view = view_of(arena, profile, NULL);
    const struct flame *flame = flame_of(arena, view, UINT32_MAX - 1000000);
    assert_int_equal(flame->node_count, 1 + DEPTH + 19 * DEPTH - 100 * 190);
    assert_int_equal(flame->node_cum[0], 20);
    flame = flame_of(arena, view, 1000);
    assert_true(flame->node_count <= 1000);
    assert_sound(flame);
}

/* Sorting uses random pivots, but the result must not be random. */
static void the_same_view_gives_the_same_arrays(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = view_of(arena, random_profile(arena, 5000, 15, 9, false), NULL);
    const struct flame *one = flame_of(arena, view, 3000), *two = flame_of(arena, view, 3000);
    assert_int_equal(one->node_count, two->node_count);
    assert_memory_equal(one->node_frame, two->node_frame, one->node_count * sizeof(uint32_t));
    assert_memory_equal(one->node_parent, two->node_parent, one->node_count * sizeof(uint32_t));
    assert_memory_equal(one->node_cum, two->node_cum, one->node_count * sizeof(int64_t));
}

static void stops_at_the_deadline(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct flame *flame;
    struct err err = {0};
    const struct view *view = folded_view(arena, "a;b 1\na;c 2\n");
    struct view late = *view;
    late.cpu_deadline_ns = clock_thread_cpu_ns() + 60 * CLOCK_NS_PER_S;
    assert_int_equal(flame_create(arena, &late, 0, &flame, &err), ERR_NONE);
    late.cpu_deadline_ns = 1;
    assert_int_equal(flame_create(arena, &late, 0, &flame, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "focus"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_at_the_deadline),
        cmocka_unit_test(stacks_share_their_beginnings),
        cmocka_unit_test(an_empty_view_is_a_root),
        cmocka_unit_test(recursion_nests),
        cmocka_unit_test(a_diff_is_ordered_by_the_larger_side),
        cmocka_unit_test(a_normalised_diff_is_cut_by_what_is_large),
        cmocka_unit_test(random_trees_keep_the_invariants),
        cmocka_unit_test(no_two_nodes_have_the_same_path),
        cmocka_unit_test(a_large_tree_is_cut_and_marked),
        cmocka_unit_test(an_address_is_the_name_of_a_frame_without_symbols),
        cmocka_unit_test(a_path_from_before_symbolization_is_found),
        cmocka_unit_test(siblings_with_the_same_name_have_different_paths),
        cmocka_unit_test(each_sibling_is_found),
        cmocka_unit_test(a_subtree_can_be_requested),
        cmocka_unit_test(the_zoom_path_is_never_cut),
        cmocka_unit_test(the_largest_subtrees_stay),
        cmocka_unit_test(stacks_may_be_very_deep),
        cmocka_unit_test(the_same_view_gives_the_same_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

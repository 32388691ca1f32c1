/*
 * bench_flame [NODES]: CPU time of one thread from a decoded profile to the compressed response of
 * /flame. Prints rows of tests/bench/run.py: name,figure,unit,goal,met.
 *
 * The profile is generated and always the same: a call tree of 1M nodes from about 69,000 stacks of
 * mean depth 22, at most 120 deep, over 30,000 functions, with Pareto-distributed values. A second
 * profile has 2,000 stacks of depth 5,000.
 */
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/report/flame_binary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 7, FUNCTIONS = 30000, DEPTH_MAX = 120, CHAIN_MEAN = 14 };

/* xorshift64*, so that the tree is the same on all platforms. */
static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(2685821657736338717);
}

static double next_unit(void)
{
    return (double)(next_random() >> 11) * 0x1p-53;
}

struct tree {
    uint32_t *parent;
    uint32_t *frame; /* location of the builder */
    uint32_t *depth;
    uint32_t count;
};

static uint32_t make_function(struct profile_builder *builder, uint32_t number)
{
    char name[96], file[64];
    snprintf(name, sizeof(name), "example.com/service/package%u.(*Type%u).Method%u", number % 211,
             number % 1009, number);
    snprintf(file, sizeof(file), "/src/service/package%u/file%u.go", number % 211, number % 1999);
    struct profile_builder_frame frame = {.name = span_text(name),
                                          .filename = span_text(file),
                                          .line = number % 977,
                                          .start_line = number % 900,
                                          .address = 0x400000 + (uint64_t)number * 64,
                                          .mapping = SPAN_LITERAL("/usr/bin/service")};
    return profile_builder_frame(builder, &frame);
}

/* A new stack branches off an old one, usually near the root. */
static uint32_t add_chain(struct tree *tree, const uint32_t *locations, uint32_t max_nodes)
{
    uint32_t at = (uint32_t)(next_unit() * next_unit() * tree->count);
    while (tree->depth[at] > 12)
        at = tree->parent[at];
    uint32_t length = 1 + (uint32_t)(-log(1 - next_unit()) * CHAIN_MEAN);
    while (length-- > 0 && tree->count < max_nodes && tree->depth[at] < DEPTH_MAX) {
        uint32_t node = tree->count++;
        /* Popular functions have many callers: squaring prefers low numbers. */
        double which = next_unit();
        tree->frame[node] = locations[(uint32_t)(which * which * FUNCTIONS)];
        tree->parent[node] = at;
        tree->depth[node] = tree->depth[at] + 1;
        at = node;
    }
    return at;
}

static void add_sample(struct profile_builder *builder, const struct tree *tree, uint32_t leaf)
{
    uint32_t stack[DEPTH_MAX + 1];
    size_t depth = 0;
    for (uint32_t at = leaf; at != 0; at = tree->parent[at])
        stack[depth++] = tree->frame[at];
    int64_t count = 1 + (int64_t)(pow(1 - next_unit(), -1 / 1.2) - 1);
    const int64_t values[] = {count, count * 10000000};
    profile_builder_add_sample(builder, stack, depth, values, NULL, 0);
}

static struct profile_builder *new_builder(void)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    profile_builder_add_value_type(builder, SPAN_LITERAL("cpu"), SPAN_LITERAL("nanoseconds"));
    return builder;
}

static struct profile *take(struct profile_builder *builder)
{
    struct profile *profile;
    struct err err;
    if (profile_builder_take(builder, &profile, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    profile_builder_destroy(builder);
    return profile;
}

static struct profile *make_wide(uint32_t max_nodes)
{
    arena_auto arena = arena_create();
    struct profile_builder *builder = new_builder();
    uint32_t *locations = arena_new(arena, uint32_t, FUNCTIONS);
    random_state = 12345;
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        locations[i] = make_function(builder, i);
    struct tree tree = {.parent = arena_new(arena, uint32_t, max_nodes),
                        .frame = arena_new(arena, uint32_t, max_nodes),
                        .depth = arena_new(arena, uint32_t, max_nodes),
                        .count = 1};
    while (tree.count < max_nodes)
        add_sample(builder, &tree, add_chain(&tree, locations, max_nodes));
    return take(builder);
}

static struct profile *make_deep(void)
{
    enum { DEEP = 5000, STACKS = 2000 };
    static uint32_t stack[DEEP];
    struct profile_builder *builder = new_builder();
    random_state = 12345;
    uint32_t locations[64];
    for (uint32_t i = 0; i < 64; i++)
        locations[i] = make_function(builder, i);
    for (uint32_t i = 0; i < STACKS; i++) {
        for (uint32_t j = 0; j < DEEP; j++)
            stack[j] = locations[j < 300 ? next_random() % 64 : j % 7];
        const int64_t values[] = {1, 10000000};
        profile_builder_add_sample(builder, stack, DEEP, values, NULL, 0);
    }
    return take(builder);
}

struct figures {
    int64_t view_ns;
    int64_t flame_ns;
    int64_t binary_ns;
    int64_t compress_ns;
    size_t raw_bytes;
    size_t compressed_bytes;
    uint32_t node_count;
    uint32_t stack_count;
};

static void measure(const struct profile *profile, struct figures *figures)
{
    arena_auto arena = arena_create();
    buf_auto raw, compressed;
    buf_init(&raw, (size_t)1 << 30);
    buf_init(&compressed, (size_t)1 << 30);
    struct view_options options = {0};
    const struct view *view;
    const struct flame *flame;
    struct err err;
    int64_t start = clock_thread_cpu_ns();
    if (view_create(arena, profile, &options, &view, &err))
        exit(1);
    figures->view_ns = clock_thread_cpu_ns() - start;
    if (flame_create(arena, view, 0, &flame, &err))
        exit(1);
    figures->flame_ns = clock_thread_cpu_ns() - start - figures->view_ns;
    int64_t middle = clock_thread_cpu_ns();
    if (flame_binary_write(flame, NULL, &raw, &err))
        exit(1);
    figures->binary_ns = clock_thread_cpu_ns() - middle;
    middle = clock_thread_cpu_ns();
    if (compress_zstd(buf_span(&raw), COMPRESS_ZSTD_DEFAULT, &compressed, &err))
        exit(1);
    figures->compress_ns = clock_thread_cpu_ns() - middle;
    figures->raw_bytes = raw.size;
    figures->compressed_bytes = compressed.size;
    figures->node_count = flame->node_count;
    figures->stack_count = view->stack_count;
}

static int64_t total_ns(const struct figures *figures)
{
    return figures->view_ns + figures->flame_ns + figures->binary_ns + figures->compress_ns;
}

static int compare_figures(const void *a, const void *b)
{
    int64_t x = total_ns(a), y = total_ns(b);
    return (x > y) - (x < y);
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static void print_row(const char *what, const char *part, double figure, const char *unit,
                      const char *goal, const char *met)
{
    printf("\"flame, %s: %s\",%.3f,%s,%s,%s\n", what, part, figure, unit, goal, met);
}

static void bench(const char *what, const struct profile *profile, bool has_goal)
{
    struct figures runs[RUNS];
    for (int i = 0; i < RUNS; i++)
        measure(profile, &runs[i]);
    qsort(runs, RUNS, sizeof(runs[0]), compare_figures);
    const struct figures *middle = &runs[RUNS / 2];
    double all = seconds(total_ns(middle)), mb = (double)middle->compressed_bytes / 1e6;
    print_row(what, "stacks", middle->stack_count, "", "", "");
    print_row(what, "nodes", middle->node_count, "", "", "");
    print_row(what, "view", seconds(middle->view_ns), "CPU s", "", "");
    print_row(what, "tree", seconds(middle->flame_ns), "CPU s", "", "");
    print_row(what, "binary", seconds(middle->binary_ns), "CPU s", "", "");
    print_row(what, "zstd -3", seconds(middle->compress_ns), "CPU s", "", "");
    print_row(what, "all after decoding", all, "CPU s", has_goal ? "at most 0.5" : "",
              !has_goal    ? ""
              : all <= 0.5 ? "yes"
                           : "no");
    print_row(what, "size", (double)middle->raw_bytes / 1e6, "MB", "", "");
    print_row(what, "size with zstd -3", mb, "MB", has_goal ? "at most 3.5" : "",
              !has_goal   ? ""
              : mb <= 3.5 ? "yes"
                          : "no");
}

int main(int count, char **arguments)
{
    uint64_t nodes = 1000000;
    if (count > 1 &&
        (!span_parse_u64(span_text(arguments[1]), &nodes) || nodes < 2 || nodes > UINT32_MAX))
        return 2;
    struct profile *wide = make_wide((uint32_t)nodes);
    bench("wide", wide, true);
    profile_destroy(wide);
    struct profile *deep = make_deep();
    bench("5000 deep", deep, false);
    profile_destroy(deep);
    return 0;
}

#include "tests/unit/lib/profile/reports.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/report/flame_binary.h"
#include "lib/profile/report/top.h"

/* A profile made by hand: inlined calls, two binaries, the kernel, labels, no names. */
struct made {
    struct profile_builder *builder;
    uint32_t mappings[3]; /* /bin/app, [kernel.kallsyms], none */
};

static uint32_t function(struct made *made, const char *name, const char *file)
{
    const struct profile_function function = {
        .name = profile_builder_string(made->builder, span_text(name)),
        .system_name = profile_builder_string(made->builder, SPAN_LITERAL("_Zsystem")),
        .filename = profile_builder_string(made->builder, span_text(file)),
        .start_line = 10};
    return profile_builder_function(made->builder, &function);
}

static uint32_t location(struct made *made, uint32_t mapping, uint64_t address,
                         const uint32_t *functions, uint32_t count)
{
    struct profile_line lines[4];
    for (uint32_t i = 0; i < count; i++)
        lines[i] = (struct profile_line){.function = functions[i], .line = 100 + i};
    const struct profile_location made_location = {.address = address, .mapping = mapping};
    return profile_builder_location(made->builder, &made_location, lines, count);
}

static void sample(struct made *made, const uint32_t *stack, size_t depth, int64_t value,
                   const char *thread)
{
    struct profile_label label = {
        .key = profile_builder_string(made->builder, SPAN_LITERAL("thread"))};
    label.text = profile_builder_string(made->builder, span_text(thread));
    profile_builder_add_sample(made->builder, stack, depth, &value, &label, thread[0] != 0);
}

static const struct profile *make(struct arena *arena)
{
    struct made made = {.builder = profile_builder_create(NULL)};
    profile_builder_add_value_type(made.builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    static const char *const binaries[] = {"/bin/app", "[kernel.kallsyms]"};
    for (uint32_t i = 0; i < 2; i++) {
        const struct profile_mapping mapping = {
            .start = 0x1000,
            .limit = 0x2000,
            .filename = profile_builder_string(made.builder, span_text(binaries[i]))};
        made.mappings[i] = profile_builder_mapping(made.builder, &mapping);
    }
    made.mappings[2] = PROFILE_NONE;
    uint32_t outer = function(&made, "outer", "outer.c"), inner = function(&made, "inner", "in.py");
    uint32_t nameless = function(&made, "", "x.c");
    const uint32_t inlined[] = {inner, outer};
    uint32_t a = location(&made, made.mappings[0], 0x1010, inlined, 2);
    uint32_t b = location(&made, made.mappings[0], 0x1020, &outer, 1);
    uint32_t kernel = location(&made, made.mappings[1], 0x1030, NULL, 0);
    uint32_t unknown = location(&made, made.mappings[2], 0x1040, NULL, 0);
    uint32_t system_only = location(&made, made.mappings[0], 0x1050, &nameless, 1);
    sample(&made, (const uint32_t[]){kernel, a, b}, 3, 5, "one");
    sample(&made, (const uint32_t[]){unknown, system_only, b}, 3, 3, "two");
    sample(&made, (const uint32_t[]){a, b}, 2, 0, "one");
    sample(&made, NULL, 0, 2, "");
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(made.builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(made.builder);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

/* "a;b value\n" per stack, in the view's order. */
static void assert_view(const struct view *view, const char *expected)
{
    buf_auto text;
    buf_init(&text, 1 << 16);
    for (uint32_t i = 0; i < view->stack_count; i++) {
        for (uint64_t j = view->stack_start[i]; j < view->stack_start[i + 1]; j++) {
            buf_append_text(&text, j > view->stack_start[i] ? ";" : "");
            buf_append_span(&text, view->frames[view->entries[j]].name);
        }
        buf_printf(&text, " %lld\n", (long long)view->values[i]);
    }
    buf_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
}

static const struct view *grouped(struct arena *arena, const char *group_by)
{
    const struct view_options options = {.group_by = span_text(group_by)};
    return view_of(arena, make(arena), &options);
}

static void groups_by_function(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const char *expected = "outer;outer;inner;[kernel.kallsyms]+0x30 5\n"
                           "outer;_Zsystem;0x1040 3\n 2\n";
    assert_view(grouped(arena, ""), expected);
    assert_view(grouped(arena, "function"), expected);
}

/* 80 stacks of value 1 that contain a location with 1,000 inlined calls 999 times, which is 80
 * million frames, and one of value 5 that contains it once. */
static const struct profile *make_deep(struct arena *arena)
{
    enum { LINES = 1000, DEPTH = 1000, STACKS = 80 };
    struct made made = {.builder = profile_builder_create(NULL)};
    profile_builder_add_value_type(made.builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    made.mappings[2] = PROFILE_NONE;
    const uint32_t inner = function(&made, "inner", "a.c"), leaf = function(&made, "leaf", "a.c");
    static struct profile_line lines[LINES];
    for (uint32_t i = 0; i < LINES; i++)
        lines[i] = (struct profile_line){.function = inner, .line = i};
    const struct profile_location many = {.address = 0x10, .mapping = PROFILE_NONE};
    static uint32_t stack[DEPTH];
    const uint32_t inlined = profile_builder_location(made.builder, &many, lines, LINES);
    for (uint32_t i = 1; i < DEPTH; i++)
        stack[i] = inlined;
    for (uint32_t i = 0; i < STACKS; i++) { /* different leaves, because equal stacks are joined */
        stack[0] = location(&made, PROFILE_NONE, 0x20 + i, &leaf, 1);
        sample(&made, stack, DEPTH, 1, "");
    }
    sample(&made, stack, 2, 5, "");
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(made.builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(made.builder);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static void very_deep_stacks_are_cut_at_the_root_if_frames_are_too_many(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = view_of(arena, make_deep(arena), &(struct view_options){0});
    assert_true(view->has_cut_stacks);
    assert_int_equal(view->total[VIEW_SIDE_B], 85);
    assert_int_equal(view->stack_count, 81);
    for (uint32_t i = 0; i < view->stack_count; i++) {
        const uint32_t *first = view->entries + view->stack_start[i];
        const uint64_t depth = view->stack_start[i + 1] - view->stack_start[i];
        const bool is_deep = i < 80;
        assert_int_equal(depth, is_deep ? VIEW_USUAL_DEPTH + 1 : 1001);
        const struct span root = view->frames[first[0]].name;
        assert_true(
            span_equal_text(root, is_deep ? "[frames above the last 1024 are cut]" : "inner"));
        assert_true(span_equal_text(view->frames[first[depth - 1]].name, "leaf"));
    }
}

static enum err_code view_code(struct arena *arena, const char *folded, struct err *err)
{
    const struct view *view;
    const struct view_options options = {0};
    return view_create(arena, folded_profile(arena, folded), &options, &view, err);
}

static void refuses_values_that_cannot_be_added(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct err err;
    assert_int_equal(view_code(arena, "a 9223372036854775806\n", &err), ERR_NONE);
    static const char *const texts[] = {
        "a 9223372036854775807\n", /* which some formats write for larger values */
        "a 9223372036854775806\na 1\n",
        "a 9223372036854775806\nb 1\n",
        "a -9223372036854775808\n",
        "a -9223372036854775808\na -9223372036854775808\n",
        "a 5000000000000000000\nb -5000000000000000000\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_int_equal(view_code(arena, texts[i], &err), ERR_TOO_LARGE);
        assert_non_null(strstr(err.message, "sample type samples"));
    }
}

static void groups_by_file_line_address_and_binary(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    assert_view(grouped(arena, "file"), "outer.c;outer.c;in.py;[[kernel.kallsyms]] 5\n"
                                        "outer.c;x.c;<unknown> 3\n 2\n");
    assert_view(grouped(arena, "address"),
                "0x1020 outer;0x1010 outer;0x1010 inner;0x1030 [kernel.kallsyms]+0x30 5\n"
                "0x1020 outer;0x1050 _Zsystem;0x1040 3\n 2\n");
    assert_view(grouped(arena, "binary"), "app;[kernel.kallsyms] 5\napp;<unknown> 3\n 2\n");
    const struct view *lines = grouped(arena, "line");
    assert_int_equal(lines->entries[0] == lines->entries[1], false); /* outer:100 and outer:101 */
    assert_int_equal(lines->frames[lines->entries[0]].line, 100);
    assert_int_equal(lines->frames[lines->entries[1]].line, 101);
}

static void groups_by_a_label(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const char *expected = "one;outer;outer;inner;[kernel.kallsyms]+0x30 5\n"
                           "two;outer;_Zsystem;0x1040 3\n(no thread) 2\n";
    assert_view(grouped(arena, "thread"), expected);
    assert_view(grouped(arena, "label:thread"), expected);
    const struct view *view = grouped(arena, "thread");
    assert_int_equal(view->frames[view->entries[0]].flags, FRAME_LABEL);
}

static void a_binary_is_never_without_symbols(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = grouped(arena, "binary");
    for (uint32_t i = 0; i < view->frame_count; i++)
        assert_false(view->frames[i].flags & FRAME_NOT_SYMBOLISED);
}

/* One sample of value 7 with labels of one key. */
static const struct profile *labelled(struct arena *arena, const char *key,
                                      const char *const *texts, size_t count)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    struct profile_label labels[4];
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    for (size_t i = 0; i < count; i++)
        labels[i] =
            (struct profile_label){.key = profile_builder_string(builder, span_text(key)),
                                   .text = profile_builder_string(builder, span_text(texts[i]))};
    const int64_t value = 7;
    profile_builder_add_sample(builder, NULL, 0, &value, labels, count);
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static char *letters(struct arena *arena, char letter, size_t count)
{
    char *text = arena_new(arena, char, count + 1);
    memset(text, letter, count);
    return text;
}

static void long_labels_are_values(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view_options options = {.group_by = SPAN_LITERAL("sql")};
    const char *const texts[] = {"select", letters(arena, 'x', 5000)};
    const struct view *view = view_of(arena, labelled(arena, "sql", &texts[1], 1), &options);
    assert_view(view, arena_printf(arena, "%s 7\n", texts[1]));
    view = view_of(arena, labelled(arena, "sql", texts, 2), &options);
    assert_view(view, "select,\xe2\x80\xa6 7\n");
}

static void an_error_about_an_unknown_label_is_shortened(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const char *const text = "v";
    const struct profile *profile = labelled(arena, letters(arena, 'k', 300), &text, 1);
    const struct view_options options = {.group_by = SPAN_LITERAL("colour")};
    const struct view *view = NULL;
    struct err err;
    assert_int_equal(view_create(arena, profile, &options, &view, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, ", which has 'kkkk"));
}

/* Locations with and without symbols of one binary, function and file with long names. */
static const struct profile *long_named(struct arena *arena, size_t name_bytes)
{
    enum { LOCATION_COUNT = 4000 };
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    const uint32_t name =
        profile_builder_string(builder, span_text(letters(arena, 'n', name_bytes)));
    const struct profile_mapping mapping = {.filename = name};
    const struct profile_function function = {.name = name, .filename = name};
    const struct profile_line line = {.function = profile_builder_function(builder, &function)};
    for (uint32_t i = 0; i < LOCATION_COUNT; i++) {
        const struct profile_location place = {
            .address = i + 1, .mapping = profile_builder_mapping(builder, &mapping)};
        struct profile_line numbered = line;
        numbered.line = i;
        uint32_t stack = profile_builder_location(builder, &place, &numbered, i % 2);
        const int64_t value = 1;
        profile_builder_add_sample(builder, &stack, 1, &value, NULL, 0);
    }
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

/* When each line hashed or copied these names, this took 4 GB and 20 s. */
static void a_long_name_that_many_lines_share_costs_once(void **state)
{
    (void)state;
    enum { NAME_BYTES = 1 << 20, MEMORY_BYTES = 32 << 20, CPU_MS = 1500 };
    static const char *const groups[] = {"function", "file", "line", "address", "binary"};
    arena_auto names = arena_create();
    const struct profile *profile = long_named(names, NAME_BYTES);
    const int64_t start_ns = clock_thread_cpu_ns();
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        arena_auto arena = arena_create();
        buf_auto output;
        buf_init(&output, MEMORY_BYTES);
        const struct view_options options = {.group_by = span_text(groups[i])};
        const struct view *view = view_of(arena, profile, &options);
        const struct flame *flame;
        struct err err;
        top_create(arena, view);
        assert_int_equal(flame_create(arena, view, 0, &flame, &err), ERR_NONE);
        assert_int_equal(flame_binary_write(flame, NULL, &output, &err), ERR_NONE);
        assert_true(arena_bytes(arena) < MEMORY_BYTES);
    }
    assert_true(clock_thread_cpu_ns() - start_ns < CPU_MS * CLOCK_NS_PER_MS);
}

/* When each type was formatted before the comparison, this took several seconds. */
static void an_unknown_type_is_refused_at_once_among_many_with_long_names(void **state)
{
    (void)state;
    enum { TYPE_COUNT = 4000, NAME_BYTES = 1 << 20, CPU_MS = 500 };
    arena_auto arena = arena_create();
    const struct profile_value_type type = {.type = 1};
    struct profile_value_type *types = arena_new(arena, struct profile_value_type, TYPE_COUNT);
    const struct span strings[] = {span_of(NULL, 0), span_text(letters(arena, 'n', NAME_BYTES))};
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        types[i] = type;
    const struct profile profile = {.strings = strings,
                                    .string_count = 2,
                                    .value_types = types,
                                    .value_type_count = TYPE_COUNT};
    const int64_t start_ns = clock_thread_cpu_ns();
    uint32_t index;
    struct err err;
    assert_int_equal(profile_find_value_type(&profile, SPAN_LITERAL("wall"), &index, &err),
                     ERR_INVALID);
    assert_true(clock_thread_cpu_ns() - start_ns < CPU_MS * CLOCK_NS_PER_MS);
}

static void an_unknown_grouping_is_refused_by_name(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = NULL;
    struct err err;
    const struct view_options options = {.group_by = SPAN_LITERAL("colour")};
    assert_int_equal(view_create(arena, make(arena), &options, &view, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "'colour'"));
    assert_non_null(strstr(err.message, "'thread'"));
    assert_int_equal(view_create(arena, folded_profile(arena, "a 1\n"), &options, &view, &err),
                     ERR_INVALID);
    assert_non_null(strstr(err.message, "no labels"));
    const struct view_options type = {.sample_type = SPAN_LITERAL("wall")};
    assert_int_equal(view_create(arena, make(arena), &type, &view, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "'wall'"));
}

static void flags_hold_for_all_occurrences(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = grouped(arena, "");
    assert_int_equal(view->frames[frame_named(view, "outer")].flags, 0);
    assert_int_equal(view->frames[frame_named(view, "inner")].flags,
                     FRAME_INLINED | FRAME_INTERPRETED);
    assert_int_equal(view->frames[frame_named(view, "[kernel.kallsyms]+0x30")].flags,
                     FRAME_KERNEL | FRAME_NOT_SYMBOLISED);
    assert_int_equal(view->frames[frame_named(view, "outer")].line, 10);
}

static void functions_of_an_interpreter_are_interpreted_whatever_their_file(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile *profile;
    struct err err;
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    static const char *const files[] = {"[cpython]", "[ruby]", "/opt/[cpython]"};
    for (uint32_t i = 0; i < 3; i++) {
        const char *name = arena_printf(arena, "f%u", i);
        const struct profile_function function = {
            .name = profile_builder_string(builder, span_text(name)),
            .filename = profile_builder_string(builder, SPAN_LITERAL("<string>"))};
        const struct profile_mapping mapping = {
            .filename = profile_builder_string(builder, span_text(files[i])),
            .has_functions = true};
        const struct profile_line line = {.function = profile_builder_function(builder, &function)};
        const struct profile_location location = {.mapping =
                                                      profile_builder_mapping(builder, &mapping)};
        const uint32_t stack = profile_builder_location(builder, &location, &line, 1);
        profile_builder_add_sample(builder, &stack, 1, (const int64_t[]){1}, NULL, 0);
    }
    assert_int_equal(profile_builder_take(builder, &profile, &err), 0);
    const struct view *view = view_of(arena, profile, &(struct view_options){0});
    assert_int_equal(view->frames[frame_named(view, "f0")].flags, FRAME_INTERPRETED);
    assert_int_equal(view->frames[frame_named(view, "f1")].flags, FRAME_INTERPRETED);
    assert_int_equal(view->frames[frame_named(view, "f2")].flags, 0);
    profile_destroy(profile);
}

static void locations_that_a_frame_joins_are_listed(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile *profile;
    struct err err;
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    static const char *const places[][3] = {{"main", "m.c", "/bin/a"},
                                            {"main", "m.c", "/bin/b"},
                                            {"main", "m.c", "/bin/b"},
                                            {"start", "s.c", "/bin/c"},
                                            {"start", "", "/bin/c"}};
    for (uint32_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        const struct profile_function function = {
            .name = profile_builder_string(builder, span_text(places[i][0])),
            .filename = profile_builder_string(builder, span_text(places[i][1]))};
        const struct profile_mapping mapping = {
            .filename = profile_builder_string(builder, span_text(places[i][2]))};
        const struct profile_line line = {.function = profile_builder_function(builder, &function)};
        const struct profile_location location = {
            .address = i, .mapping = profile_builder_mapping(builder, &mapping)};
        const uint32_t stack = profile_builder_location(builder, &location, &line, 1);
        profile_builder_add_sample(builder, &stack, 1, (const int64_t[]){1}, NULL, 0);
    }
    assert_int_equal(profile_builder_take(builder, &profile, &err), 0);
    const struct view *view = view_of(arena, profile, &(struct view_options){0});
    assert_int_equal(view->shared_origin_count, 3);
    assert_true(span_equal_text(view->shared_origins[0], "/bin/a"));
    assert_true(span_equal_text(view->shared_origins[1], "/bin/b"));
    assert_true(span_equal_text(view->shared_origins[2], "s.c"));
    view = view_of(arena, profile, &(struct view_options){.group_by = SPAN_LITERAL("binary")});
    assert_int_equal(view->shared_origin_count, 0);
    profile_destroy(profile);
}

static void totals_are_before_filtering(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct filter_rule rule = {FILTER_FOCUS, SPAN_LITERAL("inner")};
    struct view_options options = {0};
    struct err err;
    assert_int_equal(filter_create(arena, &rule, 1, &options.filter, &err), ERR_NONE);
    const struct view *view = view_of(arena, make(arena), &options);
    assert_int_equal(view->total[VIEW_SIDE_B], 10);
    assert_int_equal(view->kept[VIEW_SIDE_B], 5);
}

static void assert_filtered(enum filter_action action, const char *pattern, const char *expected)
{
    arena_auto arena = arena_create();
    const struct filter_rule rule = {action, span_text(pattern)};
    struct view_options options = {0};
    struct err err;
    assert_int_equal(filter_create(arena, &rule, 1, &options.filter, &err), ERR_NONE);
    assert_view(view_of(arena, make(arena), &options), expected);
}

static void focus_and_ignore_choose_samples(void **state)
{
    (void)state;
    const char *first = "outer;outer;inner;[kernel.kallsyms]+0x30 5\n";
    const char *second = "outer;_Zsystem;0x1040 3\n";
    assert_filtered(FILTER_FOCUS, "inner", first);
    assert_filtered(FILTER_FOCUS, "in\\.py", first);
    assert_filtered(FILTER_FOCUS, "kernel", first);
    assert_filtered(FILTER_FOCUS, "nobody", "");
    assert_filtered(FILTER_IGNORE, "inner", second);
    assert_filtered(FILTER_IGNORE, "nobody",
                    "outer;outer;inner;[kernel.kallsyms]+0x30 5\n"
                    "outer;_Zsystem;0x1040 3\n");
}

static void hide_and_show_choose_frames(void **state)
{
    (void)state;
    assert_filtered(FILTER_HIDE, "inner",
                    "outer;outer;[kernel.kallsyms]+0x30 5\nouter;_Zsystem;0x1040 3\n");
    assert_filtered(FILTER_HIDE, "kernel", "outer;outer;inner 5\nouter;_Zsystem;0x1040 3\n");
    assert_filtered(FILTER_HIDE, "/bin/app", "[kernel.kallsyms]+0x30 5\n0x1040 3\n");
    assert_filtered(FILTER_SHOW, "inner", "inner 5\n");
    assert_filtered(FILTER_SHOW, "/bin/app", "outer;outer;inner 5\nouter;_Zsystem 3\n");
}

static void expressions_of_addresses_match_symbolized_frames(void **state)
{
    (void)state;
    const char *first = "outer;outer;inner;[kernel.kallsyms]+0x30 5\n";
    assert_filtered(FILTER_FOCUS, "app\\+0x10$", first);
    assert_filtered(FILTER_FOCUS, "kallsyms.\\+0x30", first);
    assert_filtered(FILTER_FOCUS, "app\\+0x11", "");
    assert_filtered(FILTER_HIDE, "app\\+0x10$",
                    "outer;[kernel.kallsyms]+0x30 5\nouter;_Zsystem;0x1040 3\n");
    assert_filtered(FILTER_HIDE, "\\+0x30$", "outer;outer;inner 5\nouter;_Zsystem;0x1040 3\n");
    assert_filtered(FILTER_SHOW, "\\+0x50$", "_Zsystem 3\n");
}

static void labels_choose_samples(void **state)
{
    (void)state;
    const char *one = "outer;outer;inner;[kernel.kallsyms]+0x30 5\n", *none = " 2\n";
    const char *two = "outer;_Zsystem;0x1040 3\n";
    const char *not_one = "outer;_Zsystem;0x1040 3\n 2\n";
    assert_filtered(FILTER_LABEL, "thread=one", one);
    assert_filtered(FILTER_LABEL, "th\\read=two", two);
    assert_filtered(FILTER_LABEL, "thread=on", "");
    assert_filtered(FILTER_LABEL, "thread!=one", not_one);
    assert_filtered(FILTER_LABEL, "thread=", none); /* also keeps a sample without frames */
    assert_filtered(FILTER_LABEL, "thread!=",
                    "outer;outer;inner;[kernel.kallsyms]+0x30 5\n"
                    "outer;_Zsystem;0x1040 3\n");
}

static void invalid_labels_are_reported(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    static const char *const wrong[] = {"thread", "=one", "!=one", "thread\\=one"};
    struct view_options options = {0};
    struct err err;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct filter_rule rule = {FILTER_LABEL, span_text(wrong[i])};
        assert_int_equal(filter_create(arena, &rule, 1, &options.filter, &err), ERR_INVALID);
        assert_true(strncmp(err.message, "label: ", 7) == 0);
        assert_non_null(strstr(err.message, wrong[i]));
    }
    const struct filter_rule unknown = {FILTER_LABEL, SPAN_LITERAL("fred=one")};
    const struct view *view;
    assert_int_equal(filter_create(arena, &unknown, 1, &options.filter, &err), ERR_NONE);
    assert_int_equal(view_create(arena, make(arena), &options, &view, &err), ERR_INVALID);
    assert_string_equal(err.message,
                        "label: 'fred' is no label of this profile, which has 'thread'");
}

static void rules_are_combined(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct filter_rule rules[] = {{FILTER_HIDE, SPAN_LITERAL("inner")},
                                        {FILTER_FOCUS, SPAN_LITERAL("inner")},
                                        {FILTER_FOCUS, SPAN_LITERAL("kernel")},
                                        {FILTER_IGNORE, SPAN_LITERAL("")}};
    struct view_options options = {0};
    struct err err;
    assert_int_equal(filter_create(arena, rules, 4, &options.filter, &err), ERR_NONE);
    assert_view(view_of(arena, make(arena), &options), "outer;outer;[kernel.kallsyms]+0x30 5\n");
    const struct filter *filter = NULL;
    assert_int_equal(filter_create(arena, rules + 3, 1, &filter, &err), ERR_NONE);
    assert_null(filter);
}

static void an_invalid_rule_is_reported(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct filter_rule bad = {FILTER_HIDE, SPAN_LITERAL("(?=x)")};
    struct filter_rule many[FILTER_RULES_MAX + 1];
    const struct filter *filter = NULL;
    struct err err;
    assert_int_equal(filter_create(arena, &bad, 1, &filter, &err), ERR_INVALID);
    assert_true(strncmp(err.message, "hide: ", 6) == 0);
    for (size_t i = 0; i <= FILTER_RULES_MAX; i++)
        many[i] = (struct filter_rule){FILTER_FOCUS, SPAN_LITERAL("o|n")};
    assert_int_equal(filter_create(arena, many, FILTER_RULES_MAX + 1, &filter, &err),
                     ERR_TOO_LARGE);
    struct view_options options = {0};
    assert_int_equal(filter_create(arena, many, FILTER_RULES_MAX, &options.filter, &err), 0);
    assert_int_equal(view_of(arena, make(arena), &options)->stack_count, 2);
}

/* ---- drop_frames ---- */

static void assert_dropped(const char *drop, const char *keep, const char *expected)
{
    arena_auto arena = arena_create();
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    static const char *const names[] = {"main", "malloc(int)", ".malloc_dot", "operator()(int)",
                                        "leaf"};
    uint32_t frames[5];
    for (size_t i = 0; i < 5; i++) {
        const struct profile_builder_frame frame = {.name = span_text(names[i])};
        frames[i] = profile_builder_frame(builder, &frame);
    }
    const int64_t one = 1, two = 2, three = 3;
    profile_builder_add_sample(builder, (const uint32_t[]){frames[4], frames[1], frames[0]}, 3,
                               &one, NULL, 0);
    profile_builder_add_sample(builder, (const uint32_t[]){frames[4], frames[2]}, 2, &two, NULL, 0);
    profile_builder_add_sample(builder, (const uint32_t[]){frames[3], frames[0]}, 2, &three, NULL,
                               0);
    struct profile *fields = profile_builder_fields(builder);
    fields->drop_frames = profile_builder_string(builder, span_text(drop));
    fields->keep_frames = profile_builder_string(builder, span_text(keep));
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    arena_on_destroy(arena, destroy_profile, profile);
    const struct view *view = view_of(arena, profile, NULL);
    assert_view(view, expected);
    assert_int_equal(view->drop_frames_failed, strstr(drop, "(?=") != NULL);
}

static void drop_frames_cut_what_lies_beneath(void **state)
{
    (void)state;
    const char *whole = "main;malloc(int);leaf 1\n.malloc_dot;leaf 2\nmain;operator()(int) 3\n";
    assert_dropped("", "", whole);
    assert_dropped("mall", "", whole); /* the expression must match the whole name */
    assert_dropped("malloc", "", "main 1\n.malloc_dot;leaf 2\nmain;operator()(int) 3\n");
    assert_dropped("malloc.*|leaf", "", "main 1\n.malloc_dot;leaf 2\nmain;operator()(int) 3\n");
    assert_dropped("malloc|leaf", "malloc",
                   "main;malloc(int) 1\n.malloc_dot 2\nmain;operator()(int) 3\n");
    assert_dropped("operator\\(\\)", "", "main;malloc(int);leaf 1\n.malloc_dot;leaf 2\nmain 3\n");
    assert_dropped("(?=malloc)", "", whole);
}

/* ---- diffs ---- */

static void a_diff_shares_frames_and_keeps_sides_apart(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = folded_diff(arena, "a;b 5\n", "a;c 7\na;b 1\n", DIFF_ABSOLUTE);
    assert_true(view->is_diff && !view->is_normalised);
    assert_int_equal(view->frame_count, 4);
    assert_int_equal(view->total[VIEW_SIDE_A], 5);
    assert_int_equal(view->total[VIEW_SIDE_B], 8);
}

static void normalising_scales_b_to_the_total_of_a(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = folded_diff(arena, "a 100\n", "a 100\nb 100\nc 1\n", DIFF_NORMALISED);
    assert_true(view->is_normalised);
    assert_int_equal(view->total[VIEW_SIDE_A], 100);
    assert_int_equal(view->total[VIEW_SIDE_B], 100);
    assert_view(view, "a 100\nb 100\nc 1\na 100\n");
    assert_int_equal(view_scaled(view, VIEW_SIDE_B, 100), 50);
    assert_int_equal(view_scaled(view, VIEW_SIDE_A, 100), 100);
    view = folded_diff(arena, "a 100\n", "a 0\n", DIFF_NORMALISED);
    assert_view(view, "a 100\n");
}

static void totals_that_are_not_positive_are_not_normalised(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"a -5\nb 5\nc 3\n", "a -5\nb -2\n"},
                                           {"a -5\n", "a 7\n"},
                                           {"a -5\n", "a -7\n"},
                                           {"a -5\nb 5\n", "a 7\n"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        arena_auto arena = arena_create();
        const struct view *view = folded_diff(arena, pairs[i][0], pairs[i][1], DIFF_NORMALISED);
        assert_int_equal(view->total[VIEW_SIDE_B], 0);
        assert_int_equal(view_scaled(view, VIEW_SIDE_B, -5), 0);
        assert_int_equal(view_scaled(view, VIEW_SIDE_A, -5), -5);
    }
}

/* A thousand functions, each with less than half a sample after scaling to 300. */
static void normalisation_keeps_small_values(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto many;
    buf_init(&many, 1 << 16);
    for (int i = 0; i < 1000; i++)
        buf_printf(&many, "main;part%d;f%d 1\n", i % 4, i);
    buf_append_byte(&many, '\0');
    const struct view *view =
        folded_diff(arena, "main;x 300\n", (const char *)many.data, DIFF_NORMALISED);
    assert_int_equal(view->total[VIEW_SIDE_B], 300);
    const struct top *top = top_create(arena, view);
    for (uint32_t i = 0; i < top->row_count; i++) {
        int64_t cum = top->rows[i].cum[VIEW_SIDE_B];
        if (span_starts_with(view->frames[top->rows[i].frame].name, "part"))
            assert_int_equal(cum, 75);
    }
    const struct flame *flame;
    struct err err;
    assert_int_equal(flame_create(arena, view, 0, &flame, &err), ERR_NONE);
    int64_t self = 0;
    for (uint32_t i = 0; i < flame->node_count; i++) {
        self += flame->node_self[i];
        assert_in_range(flame->node_self[i], 0, 1);
        if (span_starts_with(flame->frames[flame->node_frame[i]].name, "part"))
            assert_in_range(flame->node_cum[i], 74, 76);
    }
    assert_int_equal(self, 300);
    assert_int_equal(flame->node_cum[0], 300);
}

struct type {
    const char *name;
    const char *unit;
};

static struct profile *typed_profile(const struct type *types, size_t count)
{
    struct profile *profile;
    struct err err;
    profile_builder_auto builder = profile_builder_create(NULL);
    for (size_t i = 0; i < count; i++)
        profile_builder_add_value_type(builder, span_text(types[i].name), span_text(types[i].unit));
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    return profile;
}

static const struct type cpu_types[] = {{"samples", "count"}, {"cpu", "nanoseconds"}};
static const struct type heap_types[] = {{"objects", "count"}, {"space", "bytes"}};
static const struct type reversed_types[] = {{"cpu", "nanoseconds"}, {"samples", "count"}};
static const struct type seconds_types[] = {{"wall", "seconds"}, {"cpu", "seconds"}};
static const struct type folded_types[] = {{"samples", "count"}};
static const struct type nameless_types[] = {{"", ""}, {"", ""}};

/* "0 1" for the indexes in a and b, or else the error message. */
static void assert_types(const struct type *types_a, const struct type *types_b, size_t count_b,
                         const char *text, const char *expected)
{
    uint32_t found_a, found_b;
    struct err err;
    char found[ERR_MESSAGE_BYTES];
    struct profile *a = typed_profile(types_a, 2), *b = typed_profile(types_b, count_b);
    if (diff_find_types(a, b, span_text(text), &found_a, &found_b, &err)) {
        assert_int_equal(err.code, ERR_INVALID);
        snprintf(found, sizeof(found), "%s", err.message);
    } else {
        snprintf(found, sizeof(found), "%u %u", found_a, found_b);
    }
    assert_string_equal(found, expected);
    profile_destroy(a);
    profile_destroy(b);
}

static void types_of_a_diff_are_paired_by_name_and_unit(void **state)
{
    (void)state;
    assert_types(cpu_types, cpu_types, 2, "", "1 1");
    assert_types(cpu_types, cpu_types, 2, "samples", "0 0");
    assert_types(cpu_types, reversed_types, 2, "", "0 1");
    assert_types(cpu_types, reversed_types, 2, "0", "1 0");
    assert_types(nameless_types, nameless_types, 2, "0", "0 0");
    assert_types(nameless_types, nameless_types, 2, "", "1 1");
}

static struct profile *one_sample(const char *type, const char *unit, int64_t value)
{
    struct profile *profile;
    struct err err;
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, span_text(type), span_text(unit));
    uint32_t stack[] = {profile_builder_frame(
        builder, &(struct profile_builder_frame){.name = SPAN_LITERAL("main")})};
    profile_builder_add_sample(builder, stack, 1, &value, NULL, 0);
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    return profile;
}

/* "3000 5 nanoseconds": the totals of both sides and their unit, or else the error code. */
static void assert_converted(const char *unit_a, int64_t a, const char *unit_b, int64_t b,
                             const char *expected)
{
    arena_auto arena = arena_create();
    struct profile *before = one_sample("cpu", unit_a, a), *after = one_sample("cpu", unit_b, b);
    const struct view_options options = {0};
    const struct view *view;
    struct err err;
    char found[100];
    if (diff_view_create(arena, before, after, DIFF_ABSOLUTE, &options, &view, &err))
        snprintf(found, sizeof(found), "error %d", err.code == ERR_TOO_LARGE);
    else
        snprintf(found, sizeof(found), "%lld %lld %.*s", (long long)view->total[VIEW_SIDE_A],
                 (long long)view->total[VIEW_SIDE_B], SPAN_PRINT(view_unit(view)));
    assert_string_equal(found, expected);
    profile_destroy(before);
    profile_destroy(after);
}

static void values_of_like_units_are_compared_in_the_finer_one(void **state)
{
    (void)state;
    assert_converted("microseconds", 3, "nanoseconds", 5, "3000 5 nanoseconds");
    assert_converted("ns", 5, "seconds", 2, "5 2000000000 ns");
    assert_converted("ms", 7, "milliseconds", 9, "7 9 milliseconds");
    assert_converted("KiB", 2, "bytes", 1, "2048 1 bytes");
    assert_converted("ticks", 2, "ticks", 1, "2 1 ticks");
    assert_converted("seconds", INT64_MAX / 1000, "ns", 1, "error 1");
    assert_converted("seconds", 1, "bytes", 1, "error 0");
    assert_converted("count/10", 25, "count/1000", 1125, "2500 1125 count/1000");
    assert_converted("count/1000000", 5, "count", 2, "5 2000000 count/1000000");
    assert_converted("count", INT64_MAX / 1000, "count/10000", 1, "error 1");
    assert_converted("count/10", 1, "ns", 1, "error 0");
    assert_converted("count", 1, "", 1, "error 0");
    assert_types(cpu_types, seconds_types, 2, "cpu", "1 1");
    static const struct type both[] = {{"cpu", "seconds"}, {"cpu", "nanoseconds"}};
    assert_types(cpu_types, both, 2, "1", "1 1");
}

static void a_diff_without_a_type_named_takes_one_that_both_have(void **state)
{
    (void)state;
    assert_types(cpu_types, folded_types, 1, "", "0 0");
    static const struct type mixed[] = {{"samples", "count"}, {"space", "bytes"}};
    assert_types(cpu_types, mixed, 2, "", "0 0");
}

static void a_diff_of_other_types_is_refused_and_lists_both(void **state)
{
    (void)state;
    assert_types(
        cpu_types, heap_types, 2, "",
        "the profiles cannot be compared: they have no such sample type with convertible "
        "units in common; the first has samples/count, cpu/nanoseconds, the second objects/count, "
        "space/bytes");
    assert_types(cpu_types, heap_types, 2, "0",
                 "the profiles cannot be compared by 0: they have no such sample type with "
                 "convertible units in common; the first has samples/count, cpu/nanoseconds, the "
                 "second objects/count, "
                 "space/bytes");
    static const struct type odd_types[] = {{"wall", "seconds"}, {"cpu", "ticks"}};
    assert_types(cpu_types, odd_types, 2, "cpu",
                 "the profiles cannot be compared by cpu: they have no such sample type with "
                 "convertible units in common; the first has samples/count, cpu/nanoseconds, the "
                 "second wall/seconds, "
                 "cpu/ticks");
    assert_types(cpu_types, folded_types, 1, "cpu",
                 "no sample type 'cpu' in this profile; it has 0 'samples'");
}

static void modes_have_names(void **state)
{
    (void)state;
    enum diff_mode mode;
    assert_true(diff_find_mode(SPAN_LITERAL(""), &mode) && mode == DIFF_ABSOLUTE);
    assert_true(diff_find_mode(SPAN_LITERAL("absolute"), &mode) && mode == DIFF_ABSOLUTE);
    assert_true(diff_find_mode(SPAN_LITERAL("normalised"), &mode) && mode == DIFF_NORMALISED);
    assert_true(diff_find_mode(SPAN_LITERAL("normalized"), &mode) && mode == DIFF_NORMALISED);
    assert_false(diff_find_mode(SPAN_LITERAL("relative"), &mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_by_function),
        cmocka_unit_test(very_deep_stacks_are_cut_at_the_root_if_frames_are_too_many),
        cmocka_unit_test(refuses_values_that_cannot_be_added),
        cmocka_unit_test(groups_by_file_line_address_and_binary),
        cmocka_unit_test(groups_by_a_label),
        cmocka_unit_test(a_binary_is_never_without_symbols),
        cmocka_unit_test(long_labels_are_values),
        cmocka_unit_test(an_error_about_an_unknown_label_is_shortened),
        cmocka_unit_test(a_long_name_that_many_lines_share_costs_once),
        cmocka_unit_test(an_unknown_type_is_refused_at_once_among_many_with_long_names),
        cmocka_unit_test(an_unknown_grouping_is_refused_by_name),
        cmocka_unit_test(flags_hold_for_all_occurrences),
        cmocka_unit_test(functions_of_an_interpreter_are_interpreted_whatever_their_file),
        cmocka_unit_test(locations_that_a_frame_joins_are_listed),
        cmocka_unit_test(totals_are_before_filtering),
        cmocka_unit_test(focus_and_ignore_choose_samples),
        cmocka_unit_test(hide_and_show_choose_frames),
        cmocka_unit_test(expressions_of_addresses_match_symbolized_frames),
        cmocka_unit_test(labels_choose_samples),
        cmocka_unit_test(invalid_labels_are_reported),
        cmocka_unit_test(rules_are_combined),
        cmocka_unit_test(an_invalid_rule_is_reported),
        cmocka_unit_test(drop_frames_cut_what_lies_beneath),
        cmocka_unit_test(a_diff_shares_frames_and_keeps_sides_apart),
        cmocka_unit_test(normalising_scales_b_to_the_total_of_a),
        cmocka_unit_test(totals_that_are_not_positive_are_not_normalised),
        cmocka_unit_test(normalisation_keeps_small_values),
        cmocka_unit_test(types_of_a_diff_are_paired_by_name_and_unit),
        cmocka_unit_test(values_of_like_units_are_compared_in_the_finer_one),
        cmocka_unit_test(a_diff_without_a_type_named_takes_one_that_both_have),
        cmocka_unit_test(a_diff_of_other_types_is_refused_and_lists_both),
        cmocka_unit_test(modes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The meaning of links that were made before a symbol table was uploaded. */
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "tests/unit/lib/profile/reports.h"
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/report/path_hash.h"
#include "lib/profile/report/raw_path.h"
#include "lib/profile/symbolize.h"

enum { MANY = RAW_PATH_NAMES_MAX + 1 };

/* A location at the address 0x5000 + offset; the outermost name is last, as in pprof. */
static uint32_t place(struct profile_builder *builder, uint32_t mapping, uint64_t offset,
                      const char *const *names, uint32_t count)
{
    struct profile_line lines[2] = {{0}};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t name = profile_builder_string(builder, span_text(names[i]));
        lines[i].function = profile_builder_function(
            builder, &(struct profile_function){.name = name, .system_name = name});
    }
    const struct profile_location location = {.mapping = mapping, .address = 0x5000 + offset};
    return profile_builder_location(builder, &location, lines, count);
}

/* main, raw, _Z3add, an inlined call in it that the sender knew, and MANY locations without a
 * name. */
static struct profile *make(void)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    struct err err;
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    const struct profile_mapping app = {
        .start = 0x5000,
        .limit = 0x9000,
        .filename = profile_builder_string(builder, SPAN_LITERAL("/usr/bin/app")),
        .build_id = profile_builder_string(builder, SPAN_LITERAL("abc1"))};
    const uint32_t mapping = profile_builder_mapping(builder, &app);
    const uint32_t stack[] = {
        place(builder, mapping, 0x30, (const char *[]){"leaf", "caller"}, 2),
        place(builder, mapping, 0x20, (const char *[]){"_Z3add"}, 1),
        place(builder, mapping, 0x10, NULL, 0),
    };
    profile_builder_add_sample(builder, stack, 3, &(int64_t){5}, NULL, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        const uint32_t alone = place(builder, mapping, 0x1000 + i, NULL, 0);
        profile_builder_add_sample(builder, &alone, 1, &(int64_t){1}, NULL, 0);
    }
    struct profile *profile;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    return profile;
}

/* Returns "f20" and, inlined into it, "i20"; 0x30 is only "f30". */
static enum err_code resolve(void *context, const struct symbolize_query *query,
                             struct arena *arena, struct symbolize_frames *ret_frames,
                             struct err *err)
{
    (void)context;
    (void)err;
    for (uint32_t i = 0; i < query->address_count; i++) {
        const unsigned long long at = query->addresses[i];
        const uint32_t count = at == 0x30 ? 1 : 2;
        struct symbolize_frame *frames = arena_new(arena, struct symbolize_frame, 2);
        frames[0].function = span_text(arena_printf(arena, "i%llx", at));
        frames[count - 1].function = span_text(arena_printf(arena, "f%llx", at));
        frames[0].line = frames[count - 1].line = 3;
        ret_frames[i] = (struct symbolize_frames){.frames = frames, .count = count};
    }
    return ERR_NONE;
}

static const struct view *view_named(struct arena *arena, const struct view_options *options)
{
    const struct symbolize_resolver resolver = {.resolve = resolve};
    struct profile *profile = make(), *named = arena_new(arena, struct profile, 1);
    struct symbolize_counts counts = {0};
    struct err err;
    arena_on_destroy(arena, destroy_profile, profile);
    assert_int_equal(
        symbolize_profile(&resolver, SYMBOLIZE_WITHOUT_LINES, profile, arena, named, &counts, &err),
        ERR_NONE);
    return view_of(arena, named, options);
}

/* The path of frames that are identified by name, separated by ';'. */
static uint64_t path_of(const char *names, enum view_group group)
{
    struct path_hash path = {0};
    struct span rest = span_text(names), name;
    while (rest.size) {
        span_split(rest, ';', &name, &rest);
        const struct frame frame = {.name = name};
        path = path_hash_child(path, path_hash_frame(&frame, group, PATH_HASH_OF_FRAMES));
    }
    return path_hash_u64(path);
}

static void assert_now(const struct view *view, const char *then, const char *now)
{
    struct err err;
    uint64_t found = 0;
    const enum err_code code = raw_path_find(view, path_of(then, VIEW_BY_FUNCTION), &found, &err);
    assert_int_equal(code, now ? ERR_NONE : ERR_NOT_FOUND);
    if (now)
        assert_true(found == path_of(now, VIEW_BY_FUNCTION));
}

static void old_paths_lead_to_symbolized_functions(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = view_named(arena, NULL);
    assert_true(raw_path_may_be(view) && raw_path_has_sent_names(view));
    assert_now(view, "app+0x10", "f10");
    assert_now(view, "app+0x10;_Z3add", "f10;i10;f20");
    assert_now(view, "app+0x10;_Z3add;caller", "f10;i10;f20;i20;f30");
    assert_now(view, "app+0x10;_Z3add;caller;leaf", "f10;i10;f20;i20;f30");
    assert_now(view, "app+0x1000", "f1000");
    assert_now(view, "_Z3add", NULL);
    assert_now(view, "app+0x10;app+0x20", NULL); /* it never had that name */
}

static void by_line_an_old_name_had_no_position(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view_options options = {.group_by = SPAN_LITERAL("line")};
    const struct view *view = view_named(arena, &options);
    struct err err;
    uint64_t found = 0;
    assert_int_equal(
        raw_path_find(view, path_of("app+0x10;_Z3add;caller", VIEW_BY_LINE), &found, &err),
        ERR_NONE);
    struct path_hash path = {0};
    static const char *const names[] = {"f10", "i10", "f20", "i20", "f30"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct frame *frame = &view->frames[frame_named(view, names[i])];
        path = path_hash_child(path, path_hash_frame(frame, VIEW_BY_LINE, PATH_HASH_OF_FRAMES));
    }
    assert_true(found == path_hash_u64(path));
}

/* Checks a path that starts at the function that pattern matches; now NULL: not found. */
static void assert_from(const struct view *view, enum raw_path_way way, const char *pattern,
                        const char *then, const char *now)
{
    const struct filter_rule rule = {.action = FILTER_FOCUS, .pattern = span_text(pattern)};
    struct err err;
    uint64_t found = 0;
    const enum err_code code =
        raw_path_find_from(view, way, &rule, 1, path_of(then, VIEW_BY_FUNCTION), &found, &err);
    assert_int_equal(code, now ? ERR_NONE : ERR_NOT_FOUND);
    if (now)
        assert_true(found == path_of(now, VIEW_BY_FUNCTION));
}

static void paths_from_a_function_lead_both_ways(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = view_named(arena, NULL);
    assert_from(view, RAW_PATH_BELOW, "^_Z3add$", "_Z3add;caller;leaf", "f20;i20;f30");
    assert_from(view, RAW_PATH_BELOW, "^f20$", "_Z3add;caller", "f20;i20;f30");
    assert_from(view, RAW_PATH_BELOW, "^app\\+0x10$", "app+0x10;_Z3add", "f10;i10;f20");
    assert_from(view, RAW_PATH_ABOVE, "^leaf$", "leaf;caller;_Z3add", "f30;i20;f20");
    assert_from(view, RAW_PATH_ABOVE, "^f30$", "leaf;caller;_Z3add;app+0x10",
                "f30;i20;f20;i10;f10");
    assert_from(view, RAW_PATH_ABOVE, "^app\\+0x10$", "app+0x10", "f10");
    assert_from(view, RAW_PATH_ABOVE, "^_Z3add$", "_Z3add;caller;leaf",
                NULL); /* the wrong direction */
    assert_from(view, RAW_PATH_BELOW, "^other$", "_Z3add;caller;leaf", NULL);
}

static void by_line_a_path_from_a_function_begins_with_the_first_of_its_frames(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view_options options = {.group_by = SPAN_LITERAL("line")};
    const struct view *view = view_named(arena, &options);
    const struct filter_rule rule = {.action = FILTER_FOCUS, .pattern = SPAN_LITERAL("^f20$")};
    struct err err;
    uint64_t found = 0;
    assert_int_equal(raw_path_find_from(view, RAW_PATH_BELOW, &rule, 1,
                                        path_of("_Z3add;caller", VIEW_BY_LINE), &found, &err),
                     ERR_NONE);
    struct path_hash path = {0};
    static const char *const names[] = {"f20", "i20", "f30"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct frame *frame = &view->frames[frame_named(view, names[i])];
        path = path_hash_child(path, path_hash_frame(frame, VIEW_BY_LINE, PATH_HASH_OF_FRAMES));
    }
    assert_true(found == path_hash_u64(path));
}

static bool list(const struct view *view, const char *pattern, struct buf *json)
{
    const struct filter_rule rule = {.action = FILTER_FOCUS, .pattern = span_text(pattern)};
    struct err err;
    bool is_more = false;
    buf_clear(json);
    assert_int_equal(raw_path_list_names(view, &rule, 1, json, &is_more, &err), ERR_NONE);
    return is_more;
}

static void old_names_are_found_by_new_ones(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = view_named(arena, NULL);
    buf_auto json;
    buf_init(&json, 1 << 16);
    static const char *const lists[][2] = {{"^_Z3add$", "[\"f20\"]"},
                                           {"^(leaf|caller)$", "[\"f30\"]"},
                                           {"^app\\+0x10$", "[\"f10\"]"},
                                           {"^app", "[]"}, /* not an expression for addresses */
                                           {"^app\\+0x20$", "[]"}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        assert_false(list(view, lists[i][0], &json));
        assert_true(span_equal_text(buf_span(&json), lists[i][1]));
    }
}

static void truncated_lists_of_names_are_marked(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = view_named(arena, NULL);
    buf_auto json;
    buf_init(&json, 1 << 16);
    assert_true(list(view, "^app\\+0x1...$", &json));
    assert_null(memmem(json.data, json.size, "f1064", 5)); /* the last one */
    assert_false(list(view, "^app\\+0x1(0[0-5].|06[0-3])$", &json));
    assert_non_null(memmem(json.data, json.size, "f1063", 5));
}

static void unchanged_names_need_no_translation(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = folded_view(arena, "a;b 5\n");
    buf_auto json;
    buf_init(&json, 1 << 10);
    assert_false(raw_path_may_be(view) || raw_path_has_sent_names(view));
    assert_now(view, "a;b", NULL);
    assert_from(view, RAW_PATH_BELOW, "^a$", "a;b", NULL);
    assert_false(list(view, "0x|a", &json));
    assert_true(span_equal_text(buf_span(&json), "[]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_paths_lead_to_symbolized_functions),
        cmocka_unit_test(by_line_an_old_name_had_no_position),
        cmocka_unit_test(paths_from_a_function_lead_both_ways),
        cmocka_unit_test(by_line_a_path_from_a_function_begins_with_the_first_of_its_frames),
        cmocka_unit_test(old_names_are_found_by_new_ones),
        cmocka_unit_test(truncated_lists_of_names_are_marked),
        cmocka_unit_test(unchanged_names_need_no_translation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/formats/folded.h"
#include "lib/profile/report/diff.h"
#include "lib/profile/report/export_json.h"
#include "lib/profile/report/flame.h"

#include <jansson.h>

static const struct flame *flame_of(struct arena *arena, const struct view *view)
{
    const struct flame *flame;
    struct err err;
    assert_int_equal(flame_create(arena, view, 0, &flame, &err), ERR_NONE);
    return flame;
}

static const struct view *plain_view(struct arena *arena, const struct profile *profile)
{
    const struct view *view;
    struct err err;
    const struct view_options options = {.sample_type = SPAN_LITERAL("")};
    assert_int_equal(view_create(arena, profile, &options, &view, &err), ERR_NONE);
    return view;
}

static const struct view *diff_view(struct arena *arena, const struct profile *a,
                                    const struct profile *b)
{
    const struct view *view;
    struct err err;
    const struct view_options options = {.sample_type = SPAN_LITERAL("")};
    assert_int_equal(diff_view_create(arena, a, b, DIFF_ABSOLUTE, &options, &view, &err), 0);
    return view;
}

static void a_diff_is_folded_with_both_values(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *a = decode_text(folded_decode, SPAN_LITERAL("x;y 5\nx;z 2\n"));
    struct profile *b = decode_text(folded_decode, SPAN_LITERAL("x;y 7\nx;w 1\n"));
    buf_auto text;
    struct err err;
    buf_init(&text, 1000);
    assert_int_equal(export_folded(diff_view(arena, a, b), &text, &err), ERR_NONE);
    assert_true(span_equal_text(buf_span(&text), "x;w 0 1\nx;y 5 7\nx;z 2 0\n"));
    profile_destroy(a);
    profile_destroy(b);
}

static void names_that_the_format_cannot_hold_are_changed(void **state)
{
    (void)state;
    struct profile *profile = decode_text(folded_decode, SPAN_LITERAL("a\tb;c\x02 1\na;;b 2\n"));
    assert_stacks(profile, "", "a;<unknown>;b 2\na b;c  1\n");
    profile_destroy(profile);
}

static void control_characters_become_spaces(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("a\xc2\x9b"
                                                "2Jb;c\x7f"
                                                "d\xc2\x80\xc2\x9f;\u00a0\xc2\x9a\u00e9\xc2 3\n"));
    static const char expected[] = "a 2Jb;c d  ;\u00a0 \u00e9\xc2 3\n";
    buf_auto text;
    struct err err;
    buf_init(&text, sizeof(expected) - 1); /* a shorter name leaves no byte unused */
    assert_int_equal(export_folded(plain_view(arena, profile), &text, &err), ERR_NONE);
    assert_true(span_equal_text(buf_span(&text), expected));
    profile_destroy(profile);
}

static void an_export_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *profile = decode_text(folded_decode, SPAN_LITERAL("aaa;bbb 1\n"));
    const struct view *view = plain_view(arena, profile);
    buf_auto text;
    struct err err;
    buf_init(&text, 8);
    assert_int_equal(export_folded(view, &text, &err), ERR_TOO_LARGE);
    assert_int_equal(text.size, 0); /* refused before the first byte */
    buf_clear(&text);
    assert_int_equal(export_json(flame_of(arena, view), 0, (struct span){0}, &text, &err),
                     ERR_TOO_LARGE);
    profile_destroy(profile);
}

static json_t *json_of(const struct flame *flame, uint32_t max_depth)
{
    buf_auto text;
    struct err err;
    buf_init(&text, 1 << 20);
    assert_int_equal(export_json(flame, max_depth, (struct span){0}, &text, &err), ERR_NONE);
    json_error_t error;
    json_t *json = json_loadb((const char *)text.data, text.size, 0, &error);
    if (!json)
        print_error("%s\n%.*s\n", error.text, SPAN_PRINT(buf_span(&text)));
    assert_non_null(json);
    return json;
}

static json_t *child(const json_t *node, size_t index)
{
    return json_array_get(json_object_get(node, "children"), index);
}

static void assert_node(const json_t *node, const char *name, json_int_t value, json_int_t self,
                        size_t child_count)
{
    assert_string_equal(json_string_value(json_object_get(node, "name")), name);
    assert_int_equal(json_integer_value(json_object_get(node, "value")), value);
    assert_int_equal(json_integer_value(json_object_get(node, "self")), self);
    assert_int_equal(json_array_size(json_object_get(node, "children")), child_count);
}

static void a_flame_graph_becomes_a_tree(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("m;a;x 4\nm;a 1\nm;b;y;\"z\" 2\nn 8\n"));
    json_t *json = json_of(flame_of(arena, plain_view(arena, profile)), 0);
    const json_t *root = json_object_get(json, "root");
    assert_node(root, "root", 15, 0, 2);
    assert_node(child(root, 0), "n", 8, 8, 0);
    const json_t *main_node = child(root, 1);
    assert_node(main_node, "m", 7, 0, 2);
    assert_node(child(main_node, 0), "a", 5, 1, 1);
    assert_node(child(child(main_node, 0), 0), "x", 4, 4, 0);
    assert_node(child(child(child(main_node, 1), 0), 0), "\"z\"", 2, 2, 0);
    assert_int_equal(json_integer_value(json_object_get(json, "total")), 15);
    assert_int_equal(json_integer_value(json_object_get(json, "node_count")), 8);
    assert_true(json_is_null(json_object_get(json, "cut")));
    json_decref(json);
    json = json_of(flame_of(arena, plain_view(arena, profile)), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "omitted_nodes")), 3);
    assert_node(child(child(json_object_get(json, "root"), 1), 1), "b", 2, 0, 0);
    json_decref(json);
    profile_destroy(profile);
}

static void a_diff_tree_has_both_sides(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct profile *a = decode_text(folded_decode, SPAN_LITERAL("x;y 5\nx;z 2\n"));
    struct profile *b = decode_text(folded_decode, SPAN_LITERAL("x;y 7\n"));
    json_t *json = json_of(flame_of(arena, diff_view(arena, a, b)), 0);
    const json_t *x = child(json_object_get(json, "root"), 0);
    assert_node(x, "x", 7, 0, 2);
    assert_int_equal(json_integer_value(json_object_get(x, "base_value")), 7);
    assert_int_equal(json_integer_value(json_object_get(child(x, 1), "base_self")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "base_total")), 7);
    json_decref(json);
    profile_destroy(a);
    profile_destroy(b);
}

/* The clock is read only after VIEW_CHECK_STEPS steps, so the profile has as many stacks. */
static void folding_stops_at_the_deadline(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    buf_auto lines, text;
    struct err err = {0};
    buf_init(&lines, 1 << 20);
    buf_init(&text, 1 << 20);
    for (int i = 0; i < VIEW_CHECK_STEPS; i++)
        buf_printf(&lines, "main;function%d 1\n", (i * 7919) % VIEW_CHECK_STEPS);
    struct profile *profile = decode_text(folded_decode, buf_span(&lines));
    struct view view = *plain_view(arena, profile);
    view.cpu_deadline_ns = clock_thread_cpu_ns() + 60 * CLOCK_NS_PER_S;
    assert_int_equal(export_folded(&view, &text, &err), ERR_NONE);
    view.cpu_deadline_ns = 1;
    assert_int_equal(export_folded(&view, &text, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "focus"));
    profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_stops_at_the_deadline),
        cmocka_unit_test(a_diff_is_folded_with_both_values),
        cmocka_unit_test(names_that_the_format_cannot_hold_are_changed),
        cmocka_unit_test(control_characters_become_spaces),
        cmocka_unit_test(an_export_that_does_not_fit_is_refused),
        cmocka_unit_test(a_flame_graph_becomes_a_tree),
        cmocka_unit_test(a_diff_tree_has_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

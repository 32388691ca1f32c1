#include "tests/unit/lib/profile/reports.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/report/callers.h"
#include "lib/profile/report/top.h"

/* "name flat cum\n" for each row. */
static void assert_top(const struct top *top, const char *expected)
{
    buf_auto text;
    buf_init(&text, 1 << 16);
    for (uint32_t i = 0; i < top->row_count; i++) {
        const struct top_row *row = &top->rows[i];
        buf_append_span(&text, top->view->frames[row->frame].name);
        if (top->view->is_diff)
            buf_printf(&text, " %lld %lld", (long long)row->flat[VIEW_SIDE_A],
                       (long long)row->cum[VIEW_SIDE_A]);
        buf_printf(&text, " %lld %lld\n", (long long)row->flat[VIEW_SIDE_B],
                   (long long)row->cum[VIEW_SIDE_B]);
    }
    buf_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
}

static void flat_is_the_leaf_and_cum_is_all(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = folded_view(arena, "main;parse;read 30\nmain;parse 10\nmain 5\n");
    assert_top(top_create(arena, view), "read 30 30\nparse 10 40\nmain 5 45\n");
}

static void recursion_counts_once(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = folded_view(arena, "a;b;a;b;a 7\na;a 2\n");
    assert_top(top_create(arena, view), "a 9 9\nb 0 7\n");
}

static void equal_rows_are_ordered_by_name(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    assert_top(top_create(arena, folded_view(arena, "c 1\nb 1\na 1\n")), "a 1 1\nb 1 1\nc 1 1\n");
}

static void a_diff_has_both_sides_and_is_ordered_by_change(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view =
        folded_diff(arena, "m;same 50\nm;less 10\n", "m;same 50\nm;new 4\n", DIFF_ABSOLUTE);
    assert_top(top_create(arena, view),
               "less 10 10 0 0\nnew 0 0 4 4\nm 0 60 0 54\nsame 50 50 50 50\n");
}

/* b has 30 times as much as a: 10 of b is scaled to 0, but listed. */
static void a_normalised_diff_lists_what_it_rounds_to_0(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view =
        folded_diff(arena, "m;x 10\n", "m;x 280\nm;y 10\nm;y;z 10\n", DIFF_NORMALISED);
    assert_top(top_create(arena, view), "x 10 10 9 9\ny 0 0 0 1\nm 0 10 0 10\nz 0 0 0 0\n");
    const struct callers *callers;
    struct err err;
    assert_int_equal(callers_create(arena, view, SPAN_LITERAL("y"), &callers, &err), ERR_NONE);
    assert_int_equal(callers->callee_count, 1);
    buf_auto text;
    buf_init(&text, 1000);
    assert_int_equal(export_folded(view, &text, &err), ERR_NONE);
    assert_true(span_equal_text(buf_span(&text), "m;x 10 9\nm;y 0 0\nm;y;z 0 0\n"));
}

static void a_delta_stays_within_int64(void **state)
{
    (void)state;
    const int64_t up[VIEW_SIDE_COUNT] = {[VIEW_SIDE_A] = INT64_MIN, [VIEW_SIDE_B] = 5};
    const int64_t down[VIEW_SIDE_COUNT] = {[VIEW_SIDE_A] = INT64_MAX, [VIEW_SIDE_B] = -5};
    const int64_t plain[VIEW_SIDE_COUNT] = {[VIEW_SIDE_A] = 3, [VIEW_SIDE_B] = 10};
    assert_true(top_delta(up) == INT64_MAX);
    assert_true(top_delta(down) == INT64_MIN);
    assert_int_equal(top_delta(plain), 7);
}

static int64_t edge(const struct callers *callers, const struct callers_row *rows, uint32_t count,
                    const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (span_equal_text(callers->view->frames[rows[i].frame].name, name))
            return rows[i].value[VIEW_SIDE_B];
    }
    return -1;
}

static const struct callers *callers_of(struct arena *arena, const struct view *view,
                                        const char *name)
{
    const struct callers *callers = NULL;
    struct err err;
    assert_int_equal(callers_create(arena, view, span_text(name), &callers, &err), ERR_NONE);
    return callers;
}

static void callers_and_callees_are_neighbours(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view = folded_view(arena, "main;a;f;x 1\nmain;b;f;x 2\nmain;f 4\nf 8\n");
    const struct callers *f = callers_of(arena, view, "f");
    assert_int_equal(f->flat[VIEW_SIDE_B], 12);
    assert_int_equal(f->cum[VIEW_SIDE_B], 15);
    assert_int_equal(f->caller_count, 3);
    assert_true(span_equal_text(view->frames[f->callers[0].frame].name, "main"));
    assert_int_equal(edge(f, f->callers, f->caller_count, "main"), 4);
    assert_int_equal(edge(f, f->callers, f->caller_count, "b"), 2);
    assert_int_equal(f->callee_count, 1);
    assert_int_equal(edge(f, f->callees, f->callee_count, "x"), 3);
}

static void an_edge_counts_once_per_sample_and_never_to_itself(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct callers *f = callers_of(arena, folded_view(arena, "g;f;g;f;f 5\n"), "f");
    assert_int_equal(f->cum[VIEW_SIDE_B], 5);
    assert_int_equal(f->caller_count, 1);
    assert_int_equal(edge(f, f->callers, 1, "g"), 5);
    assert_int_equal(f->callee_count, 1);
    assert_int_equal(edge(f, f->callees, 1, "g"), 5);
}

static void an_unknown_name_is_not_found(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct callers *callers = NULL;
    struct err err;
    const struct view *view = folded_view(arena, "root;a 1\n");
    assert_int_equal(callers_create(arena, view, SPAN_LITERAL("b"), &callers, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "'b'"));
    assert_int_equal(callers_of(arena, view, "root")->callee_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_is_the_leaf_and_cum_is_all),
        cmocka_unit_test(recursion_counts_once),
        cmocka_unit_test(equal_rows_are_ordered_by_name),
        cmocka_unit_test(a_diff_has_both_sides_and_is_ordered_by_change),
        cmocka_unit_test(a_normalised_diff_lists_what_it_rounds_to_0),
        cmocka_unit_test(a_delta_stays_within_int64),
        cmocka_unit_test(callers_and_callees_are_neighbours),
        cmocka_unit_test(an_edge_counts_once_per_sample_and_never_to_itself),
        cmocka_unit_test(an_unknown_name_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

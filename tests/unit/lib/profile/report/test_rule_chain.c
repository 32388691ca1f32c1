/* The stacks of a view that a page's rules leave. */
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "tests/unit/lib/profile/reports.h"
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/profile/report/rule_chain.h"

static const char stacks[] =
    "main;walk;read;walk;alloc 7\nmain;walk;read 20\nmain 3\ngc;alloc 13\n";

/* Applies rules to folded text; the result is folded text. */
static void assert_left(const struct chain_rule *rules, size_t count, const char *expected)
{
    arena_auto arena = arena_create();
    const struct view *view;
    struct err err;
    buf_auto text;
    buf_init(&text, 1 << 20);
    assert_int_equal(rule_chain_apply(arena, folded_view(arena, stacks), rules, count, &view, &err),
                     ERR_NONE);
    assert_int_equal(export_folded(view, &text, &err), ERR_NONE);
    buf_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
}

static struct chain_rule rule(enum chain_action action, const char *text)
{
    return (struct chain_rule){.action = action, .text = span_text(text)};
}

static void each_rule_sees_what_the_one_before_it_left(void **state)
{
    (void)state;
    const struct chain_rule rules[] = {rule(CHAIN_HIDE, "^read$"), rule(CHAIN_FOCUS, "read|gc"),
                                       rule(CHAIN_MERGE, "gc")};
    assert_left(rules, 1, "gc;alloc 13\nmain 3\nmain;walk 20\nmain;walk;walk;alloc 7\n");
    assert_left(rules, 2, "gc;alloc 13\n");
    assert_left(rules, 3, "gc 13\n");
}

static void recursion_is_removed_with_the_frames_between(void **state)
{
    (void)state;
    const struct chain_rule one = rule(CHAIN_RECURSION, "walk"), all = rule(CHAIN_RECURSION, "");
    const char left[] = "gc;alloc 13\nmain 3\nmain;walk;alloc 7\nmain;walk;read 20\n";
    assert_left(&one, 1, left);
    assert_left(&all, 1, left);
}

static void kept_samples_are_counted_and_the_total_stays(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view, *whole = folded_view(arena, stacks);
    const struct chain_rule rules[] = {rule(CHAIN_SHOW, "alloc")};
    struct err err;
    assert_int_equal(rule_chain_apply(arena, whole, rules, 1, &view, &err), ERR_NONE);
    assert_int_equal(view->stack_count, 2);
    assert_int_equal(view->kept[VIEW_SIDE_B], 20);
    assert_int_equal(view->total[VIEW_SIDE_B], 43);
    assert_ptr_equal(view->without_chain, whole);
    assert_int_equal(whole->stack_count, 4);
}

static void both_sides_of_a_comparison_lose_the_same(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct view *view,
        *whole = folded_diff(arena, "a;b 10\nc 10\n", "a;b 40\nd 10\n", DIFF_NORMALISED);
    const struct chain_rule rules[] = {rule(CHAIN_IGNORE, "c|d")};
    struct err err;
    assert_int_equal(rule_chain_apply(arena, whole, rules, 1, &view, &err), ERR_NONE);
    assert_int_equal(view->kept[VIEW_SIDE_A], 10);
    assert_int_equal(view->kept[VIEW_SIDE_B], 16); /* 40 of 50, scaled to 20 */
}

static void unknown_rules_are_reported(void **state)
{
    (void)state;
    const struct chain_rule known[] = {rule(CHAIN_ONLY, "go"), rule(CHAIN_RECURSION, ""),
                                       rule(CHAIN_FOCUS, "a|b")};
    const struct chain_rule unknown[] = {rule(CHAIN_ONLY, "cobol"), rule(CHAIN_FOCUS, "(")};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        assert_true(chain_rule_is_known(&known[i]));
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
        arena_auto arena = arena_create();
        const struct view *view;
        struct err err;
        assert_false(chain_rule_is_known(&unknown[i]));
        assert_int_equal(
            rule_chain_apply(arena, folded_view(arena, stacks), &unknown[i], 1, &view, &err),
            ERR_INVALID);
    }
}

static void rules_that_match_no_frame_are_reported(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct chain_rule rules[] = {rule(CHAIN_FOCUS, "alloc"), rule(CHAIN_HIDE, "root"),
                                       rule(CHAIN_IGNORE, "^al$"), rule(CHAIN_SHOW, "")};
    bool nameless[4];
    struct err err;
    assert_int_equal(rule_chain_find_nameless(folded_view(arena, stacks), rules, 4, nameless, &err),
                     ERR_NONE);
    const bool expected[4] = {false, true, true, false};
    assert_memory_equal(nameless, expected, sizeof(expected));
}

static void stops_at_the_deadline(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct view late = *folded_view(arena, stacks);
    const struct view *view;
    const struct chain_rule rules[] = {rule(CHAIN_FOCUS, "a")};
    struct err err;
    late.cpu_deadline_ns = 1;
    assert_int_equal(rule_chain_apply(arena, &late, rules, 1, &view, &err), ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_sees_what_the_one_before_it_left),
        cmocka_unit_test(recursion_is_removed_with_the_frames_between),
        cmocka_unit_test(kept_samples_are_counted_and_the_total_stays),
        cmocka_unit_test(both_sides_of_a_comparison_lose_the_same),
        cmocka_unit_test(unknown_rules_are_reported),
        cmocka_unit_test(rules_that_match_no_frame_are_reported),
        cmocka_unit_test(stops_at_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

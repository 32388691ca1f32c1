#include "tests/unit/test.h"

#include "api/share/view_counter.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"

#include <stdio.h>

static int start(void **state)
{
    *state = view_counter_create();
    return 0;
}

static int stop(void **state)
{
    view_counter_destroy(*state);
    return 0;
}

static int64_t taken(struct view_counter *views, const char *id)
{
    arena_auto arena = arena_create();
    const struct view_count *counts;
    uint32_t count = view_counter_take(views, arena, &counts);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(counts[i].share_id, id) == 0)
            return counts[i].count;
    return 0;
}

static void counts_each_address_once_in_half_an_hour(void **state)
{
    struct span id = SPAN_LITERAL("one");
    view_counter_count(*state, id, "192.0.2.1", 1);
    view_counter_count(*state, id, "192.0.2.1", 2);
    view_counter_count(*state, id, "192.0.2.2", 3);
    assert_int_equal(taken(*state, "one"), 2);
    assert_int_equal(taken(*state, "one"), 0);
    view_counter_count(*state, id, "192.0.2.1", VIEW_COUNTER_AGAIN_S * CLOCK_NS_PER_S + 1);
    assert_int_equal(taken(*state, "one"), 1);
}

static void keeps_counts_that_were_not_written(void **state)
{
    arena_auto arena = arena_create();
    const struct view_count *counts;
    view_counter_count(*state, SPAN_LITERAL("one"), "192.0.2.1", 1);
    uint32_t count = view_counter_take(*state, arena, &counts);
    assert_int_equal(count, 1);
    view_counter_count(*state, SPAN_LITERAL("one"), "192.0.2.2", 1);
    view_counter_give(*state, counts, count);
    assert_int_equal(taken(*state, "one"), 2);
}

static void holds_many_shares_but_not_more_than_its_bound(void **state)
{
    arena_auto arena = arena_create();
    const struct view_count *counts;
    for (int i = 0; i < VIEW_COUNTER_PENDING + 100; i++) {
        char id[16];
        int length = snprintf(id, sizeof(id), "share%d", i);
        view_counter_count(*state, span_of(id, (size_t)length), "192.0.2.1", 1);
    }
    assert_int_equal(view_counter_take(*state, arena, &counts), VIEW_COUNTER_PENDING);
    assert_string_equal(counts[0].share_id, "share0");
    assert_int_equal(counts[0].count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_each_address_once_in_half_an_hour, start, stop),
        cmocka_unit_test_setup_teardown(keeps_counts_that_were_not_written, start, stop),
        cmocka_unit_test_setup_teardown(holds_many_shares_but_not_more_than_its_bound, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

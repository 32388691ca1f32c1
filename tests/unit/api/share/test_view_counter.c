#include "tests/unit/test.h"

#include "api/share/view_counter.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <stdio.h>

static int start(void **state)
{
    *state = share_views_create();
    return 0;
}

static int stop(void **state)
{
    share_views_destroy(*state);
    return 0;
}

static int64_t taken(struct share_views *views, const char *id)
{
    arena_auto arena = arena_create();
    const struct share_view_count *counts;
    uint32_t count = share_views_take(views, arena, &counts);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(counts[i].share_id, id) == 0)
            return counts[i].count;
    return 0;
}

static void counts_each_address_once_in_half_an_hour(void **state)
{
    struct span id = SPAN_LITERAL("one");
    share_views_count(*state, id, "192.0.2.1", 1);
    share_views_count(*state, id, "192.0.2.1", 2);
    share_views_count(*state, id, "192.0.2.2", 3);
    assert_int_equal(taken(*state, "one"), 2);
    assert_int_equal(taken(*state, "one"), 0);
    share_views_count(*state, id, "192.0.2.1", SHARE_VIEWS_AGAIN_S * CLOCK_NS_PER_S + 1);
    assert_int_equal(taken(*state, "one"), 1);
}

static void gives_back_what_could_not_be_written(void **state)
{
    arena_auto arena = arena_create();
    const struct share_view_count *counts;
    share_views_count(*state, SPAN_LITERAL("one"), "192.0.2.1", 1);
    uint32_t count = share_views_take(*state, arena, &counts);
    assert_int_equal(count, 1);
    share_views_count(*state, SPAN_LITERAL("one"), "192.0.2.2", 1);
    share_views_give(*state, counts, count);
    assert_int_equal(taken(*state, "one"), 2);
}

static void holds_many_shares_but_not_more_than_its_bound(void **state)
{
    arena_auto arena = arena_create();
    const struct share_view_count *counts;
    for (int i = 0; i < SHARE_VIEWS_PENDING + 100; i++) {
        char id[16];
        int length = snprintf(id, sizeof(id), "share%d", i);
        share_views_count(*state, span_of(id, (size_t)length), "192.0.2.1", 1);
    }
    assert_int_equal(share_views_take(*state, arena, &counts), SHARE_VIEWS_PENDING);
    assert_string_equal(counts[0].share_id, "share0");
    assert_int_equal(counts[0].count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_each_address_once_in_half_an_hour, start, stop),
        cmocka_unit_test_setup_teardown(gives_back_what_could_not_be_written, start, stop),
        cmocka_unit_test_setup_teardown(holds_many_shares_but_not_more_than_its_bound, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "api/debuginfo/builder_queue.h"

static void one_builder_always_runs(void **state)
{
    (void)state;
    struct builder_queue queue = BUILDER_QUEUE_EMPTY;
    struct builder_ticket large, small;
    builder_queue_join(&queue, &large, 30);
    builder_queue_join(&queue, &small, 1);
    assert_true(builder_queue_enter(&queue, &large, 10));
    assert_false(builder_queue_enter(&queue, &small, 10));
    builder_queue_leave(&queue, 30);
    assert_true(builder_queue_enter(&queue, &small, 10));
    builder_queue_leave(&queue, 1);
}

static void builders_run_together_as_far_as_the_memory_allows(void **state)
{
    (void)state;
    struct builder_queue queue = BUILDER_QUEUE_EMPTY;
    struct builder_ticket tickets[3];
    for (int i = 0; i < 3; i++)
        builder_queue_join(&queue, &tickets[i], 5);
    assert_true(builder_queue_enter(&queue, &tickets[0], 10));
    assert_true(builder_queue_enter(&queue, &tickets[1], 10));
    assert_false(builder_queue_enter(&queue, &tickets[2], 10));
    builder_queue_leave(&queue, 5);
    assert_true(builder_queue_enter(&queue, &tickets[2], 10));
}

static void a_large_builder_is_not_overtaken_by_small_ones(void **state)
{
    (void)state;
    struct builder_queue queue = BUILDER_QUEUE_EMPTY;
    struct builder_ticket running, large, small;
    builder_queue_join(&queue, &running, 5);
    builder_queue_join(&queue, &large, 8);
    builder_queue_join(&queue, &small, 5);
    assert_true(builder_queue_enter(&queue, &running, 10));
    assert_false(builder_queue_enter(&queue, &large, 10));
    assert_false(builder_queue_enter(&queue, &small, 10)); /* although it fits */
    builder_queue_leave(&queue, 5);
    assert_false(builder_queue_enter(&queue, &small, 10));
    assert_true(builder_queue_enter(&queue, &large, 10));
}

static void a_cancelled_ticket_lets_the_others_pass(void **state)
{
    (void)state;
    struct builder_queue queue = BUILDER_QUEUE_EMPTY;
    struct builder_ticket tickets[4];
    for (int i = 0; i < 4; i++)
        builder_queue_join(&queue, &tickets[i], 10);
    assert_true(builder_queue_enter(&queue, &tickets[0], 10));
    builder_queue_cancel(&queue, &tickets[2]);
    builder_queue_cancel(&queue, &tickets[1]);
    builder_queue_leave(&queue, 10);
    assert_true(builder_queue_enter(&queue, &tickets[3], 10));
    builder_queue_join(&queue, &tickets[1], 10);
    builder_queue_cancel(&queue, &tickets[1]);
    builder_queue_leave(&queue, 10);
    assert_null(queue.first);
    assert_int_equal(queue.running_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_builder_always_runs),
        cmocka_unit_test(builders_run_together_as_far_as_the_memory_allows),
        cmocka_unit_test(a_large_builder_is_not_overtaken_by_small_ones),
        cmocka_unit_test(a_cancelled_ticket_lets_the_others_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

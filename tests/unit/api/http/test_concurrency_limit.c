#include "tests/unit/test.h"

#include "api/http/concurrency_limit.h"

static int woken_count;

static void count_wake(struct turn *self)
{
    assert_true(self->is_held);
    woken_count++;
}

static struct turn turn_of(const char *key)
{
    return (struct turn){.key = key, .wake = count_wake};
}

static int start(void **state)
{
    woken_count = 0;
    *state = turns_create(8, 5); /* 2 of one, 6 of all; 3 of one may wait */
    return 0;
}

static int stop(void **state)
{
    turns_destroy(*state);
    return 0;
}

static void one_share_has_few_turns_and_others_have_theirs(void **state)
{
    struct turn slow[3] = {turn_of("slow"), turn_of("slow"), turn_of("slow")};
    struct turn other = turn_of("other");
    assert_true(turns_take(*state, &slow[0]));
    assert_true(turns_take(*state, &slow[0])); /* it is held */
    assert_true(turns_take(*state, &slow[1]));
    assert_false(turns_take(*state, &slow[2]));
    assert_true(turns_take(*state, &other));
    turns_give(*state, &slow[0]);
    assert_true(turns_take(*state, &slow[2]));
    turns_give(*state, &slow[1]);
    turns_give(*state, &slow[2]);
    turns_give(*state, &other);
}

static void who_may_have_more_turns_of_one_key_has_them(void **state)
{
    struct turn slow[5], other = turn_of("other");
    for (int i = 0; i < 5; i++) {
        slow[i] = turn_of("slow");
        slow[i].most = 4;
        assert_int_equal(turns_take_or_wait(*state, &slow[i]), i < 4 ? TURNS_TAKEN : TURNS_WAITING);
    }
    assert_true(turns_take(*state, &other));
    turns_give(*state, &other);
    assert_int_equal(woken_count, 0);
    turns_give(*state, &slow[0]);
    assert_int_equal(woken_count, 1);
    for (int i = 1; i < 5; i++)
        turns_give(*state, &slow[i]);
}

static void all_shares_together_leave_workers_free(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g"};
    struct turn turns[7];
    for (int i = 0; i < 7; i++) {
        turns[i] = turn_of(keys[i]);
        assert_int_equal(turns_take(*state, &turns[i]), i < 6);
    }
    for (int i = 0; i < 6; i++)
        turns_give(*state, &turns[i]);
}

static void half_of_those_who_wait_are_others(void **state)
{
    struct turn slow[6], third[3];
    for (int i = 0; i < 6; i++) {
        slow[i] = turn_of("slow");
        assert_int_equal(turns_take_or_wait(*state, &slow[i]) == TURNS_REFUSED, i == 5);
    }
    for (int i = 0; i < 3; i++) {
        third[i] = turn_of("third");
        assert_int_equal(turns_take_or_wait(*state, &third[i]),
                         i < 2 ? TURNS_TAKEN : TURNS_WAITING);
    }
    for (int i = 0; i < 5; i++)
        turns_give(*state, &slow[i]);
    for (int i = 0; i < 3; i++)
        turns_give(*state, &third[i]);
}

static void who_waits_is_woken_in_order_and_holds_the_turn(void **state)
{
    struct turn slow[6], other = turn_of("other");
    for (int i = 0; i < 6; i++) {
        static const enum turns_outcome expected[] = {TURNS_TAKEN,   TURNS_TAKEN,   TURNS_WAITING,
                                                      TURNS_WAITING, TURNS_WAITING, TURNS_REFUSED};
        slow[i] = turn_of("slow");
        assert_int_equal(turns_take_or_wait(*state, &slow[i]), expected[i]);
    }
    assert_int_equal(turns_take_or_wait(*state, &other), TURNS_TAKEN);
    turns_give(*state, &other); /* none of those who wait may have it */
    assert_int_equal(woken_count, 0);
    assert_int_equal(turns_waiting_count(*state), 3);
    turns_give(*state, &slow[1]);
    assert_int_equal(woken_count, 1);
    assert_true(slow[2].is_held);
    assert_false(slow[3].is_held);
    turns_give(*state, &slow[0]);
    turns_give(*state, &slow[2]);
    assert_int_equal(woken_count, 3);
    assert_int_equal(turns_waiting_count(*state), 0);
    turns_give(*state, &slow[3]);
    assert_int_equal(turns_held_count(*state), 1);
    turns_give(*state, &slow[4]);
    assert_int_equal(turns_held_count(*state), 0);
    assert_int_equal(woken_count, 3);
}

static void who_leaves_is_not_woken(void **state)
{
    struct turn slow[5];
    for (int i = 0; i < 5; i++) {
        slow[i] = turn_of("slow");
        assert_int_equal(turns_take_or_wait(*state, &slow[i]), i < 2 ? TURNS_TAKEN : TURNS_WAITING);
    }
    assert_false(turns_leave(*state, &slow[0])); /* it is held */
    assert_true(turns_leave(*state, &slow[3]));
    assert_false(turns_leave(*state, &slow[3]));
    assert_int_equal(turns_waiting_count(*state), 2);
    turns_give(*state, &slow[0]);
    assert_true(slow[2].is_held);
    assert_false(turns_leave(*state, &slow[2])); /* it was woken */
    turns_give(*state, &slow[1]);
    assert_int_equal(woken_count, 2);
    assert_true(slow[4].is_held && !slow[3].is_held);
    assert_int_equal(turns_take_or_wait(*state, &slow[3]), TURNS_WAITING);
    turns_give(*state, &slow[2]);
    turns_give(*state, &slow[4]);
    turns_give(*state, &slow[3]);
}

static struct turn turn_of_source(const char *key, const char *source)
{
    struct turn turn = turn_of(key);
    turn.source = source;
    return turn;
}

static void a_source_has_one_turn_at_a_time_whatever_the_key(void **state)
{
    struct turn first = turn_of_source("a", "192.0.2.1"), second = turn_of_source("b", "192.0.2.1");
    struct turn other = turn_of_source("c", "192.0.2.2"), third = turn_of_source("d", "192.0.2.1");
    assert_int_equal(turns_take_or_wait(*state, &first), TURNS_TAKEN);
    assert_int_equal(turns_take_or_wait(*state, &second), TURNS_WAITING);
    assert_int_equal(turns_take_or_wait(*state, &other), TURNS_TAKEN);
    assert_int_equal(turns_take_or_wait(*state, &third), TURNS_WAITING);
    turns_give(*state, &other);
    assert_int_equal(woken_count, 0);
    turns_give(*state, &first);
    assert_true(second.is_held && !third.is_held);
    turns_give(*state, &second);
    assert_true(third.is_held);
    turns_give(*state, &third);
}

static void a_turn_given_back_wakes_waiters_for_its_key_and_for_its_source(void **state)
{
    struct turn first = turn_of_source("a", "192.0.2.1"),
                same_key[2] = {turn_of("a"), turn_of("a")};
    struct turn same_source = turn_of_source("b", "192.0.2.1");
    assert_int_equal(turns_take_or_wait(*state, &first), TURNS_TAKEN);
    assert_int_equal(turns_take_or_wait(*state, &same_key[0]), TURNS_TAKEN);
    assert_int_equal(turns_take_or_wait(*state, &same_key[1]), TURNS_WAITING);
    assert_int_equal(turns_take_or_wait(*state, &same_source), TURNS_WAITING);
    turns_give(*state, &first);
    assert_true(same_key[1].is_held && same_source.is_held);
    turns_give(*state, &same_key[0]);
    turns_give(*state, &same_key[1]);
    turns_give(*state, &same_source);
}

static void a_source_has_a_limit_on_waiting_turns(void **state)
{
    (void)state;
    struct turns *turns = turns_create(8, 1000);
    struct turn turn[TURNS_WAITING_OF_SOURCE + 2], other = turn_of_source("a", "192.0.2.2");
    const int last = TURNS_WAITING_OF_SOURCE + 1;
    for (int i = 0; i <= last; i++) {
        turn[i] = turn_of_source("a", "192.0.2.1");
        assert_int_equal(turns_take_or_wait(turns, &turn[i]), i == 0      ? TURNS_TAKEN
                                                              : i == last ? TURNS_REFUSED
                                                                          : TURNS_WAITING);
    }
    assert_int_equal(turns_take_or_wait(turns, &other), TURNS_TAKEN);
    for (int i = 0; i < last; i++)
        turns_give(turns, &turn[i]);
    turns_give(turns, &other);
    turns_destroy(turns);
}

static void a_single_worker_still_has_a_turn(void **state)
{
    (void)state;
    struct turns *turns = turns_create(1, 1);
    struct turn turn = turn_of("a");
    assert_true(turns_take(turns, &turn));
    turns_give(turns, &turn);
    turns_destroy(turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_share_has_few_turns_and_others_have_theirs, start,
                                        stop),
        cmocka_unit_test_setup_teardown(who_may_have_more_turns_of_one_key_has_them, start, stop),
        cmocka_unit_test_setup_teardown(all_shares_together_leave_workers_free, start, stop),
        cmocka_unit_test_setup_teardown(half_of_those_who_wait_are_others, start, stop),
        cmocka_unit_test_setup_teardown(who_waits_is_woken_in_order_and_holds_the_turn, start,
                                        stop),
        cmocka_unit_test_setup_teardown(who_leaves_is_not_woken, start, stop),
        cmocka_unit_test_setup_teardown(a_source_has_one_turn_at_a_time_whatever_the_key, start,
                                        stop),
        cmocka_unit_test_setup_teardown(
            a_turn_given_back_wakes_waiters_for_its_key_and_for_its_source, start, stop),
        cmocka_unit_test(a_source_has_a_limit_on_waiting_turns),
        cmocka_unit_test(a_single_worker_still_has_a_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

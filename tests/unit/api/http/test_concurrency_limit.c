#include "tests/unit/test.h"

#include "api/http/concurrency_limit.h"
#include "lib/base/clock.h"

#include <stdio.h>

static int woken_count;

static void count_wake(struct concurrency_slot *self)
{
    assert_true(self->is_held);
    woken_count++;
}

static struct concurrency_slot *refused;

static void note_refused(struct concurrency_slot *self)
{
    assert_false(self->is_held);
    refused = self;
}

/* Time passes only where a test says so. */
static int64_t now_ns;

static int64_t read_clock(void)
{
    return now_ns;
}

static struct concurrency_limit *create(int worker_count, int max_waiting)
{
    struct concurrency_limit *concurrency = concurrency_limit_create(worker_count, max_waiting);
    now_ns = CLOCK_NS_PER_S;
    concurrency_limit_set_clock(concurrency, read_clock);
    return concurrency;
}

static struct concurrency_limit *create_shares(int worker_count, int max_waiting)
{
    struct concurrency_limit *shares = concurrency_limit_create_shares(worker_count, max_waiting);
    now_ns = CLOCK_NS_PER_S;
    concurrency_limit_set_clock(shares, read_clock);
    return shares;
}

static struct concurrency_slot slot_of(const char *key)
{
    return (struct concurrency_slot){.key = key, .wake = count_wake, .refuse = note_refused};
}

static int start(void **state)
{
    woken_count = 0;
    *state = create(8, 5); /* 8 at a time: 2 per key and 6 of all; 3 per key may wait */
    return 0;
}

static int stop(void **state)
{
    concurrency_limit_destroy(*state);
    return 0;
}

static void one_share_does_not_block_other_shares(void **state)
{
    struct concurrency_slot slow[3] = {slot_of("slow"), slot_of("slow"), slot_of("slow")};
    struct concurrency_slot other = slot_of("other");
    assert_true(concurrency_limit_take(*state, &slow[0]));
    assert_true(concurrency_limit_take(*state, &slow[0])); /* already taken */
    assert_true(concurrency_limit_take(*state, &slow[1]));
    assert_false(concurrency_limit_take(*state, &slow[2]));
    assert_true(concurrency_limit_take(*state, &other));
    concurrency_limit_give(*state, &slow[0]);
    assert_true(concurrency_limit_take(*state, &slow[2]));
    concurrency_limit_give(*state, &slow[1]);
    concurrency_limit_give(*state, &slow[2]);
    concurrency_limit_give(*state, &other);
}

static void a_higher_limit_per_key_is_respected(void **state)
{
    struct concurrency_slot slow[5], other = slot_of("other");
    for (int i = 0; i < 5; i++) {
        slow[i] = slot_of("slow");
        slow[i].most = 4;
        assert_int_equal(concurrency_limit_take_or_wait(*state, &slow[i]),
                         i < 4 ? CONCURRENCY_LIMIT_TAKEN : CONCURRENCY_LIMIT_WAITING);
    }
    assert_true(concurrency_limit_take(*state, &other));
    concurrency_limit_give(*state, &other);
    assert_int_equal(woken_count, 0);
    concurrency_limit_give(*state, &slow[0]);
    assert_int_equal(woken_count, 1);
    for (int i = 1; i < 5; i++)
        concurrency_limit_give(*state, &slow[i]);
}

static struct concurrency_slot slot_of_client(const char *key, const char *client,
                                              bool is_anonymous)
{
    struct concurrency_slot slot = slot_of(key);
    slot.client = client;
    slot.is_anonymous = is_anonymous;
    return slot;
}

static void give_all(struct concurrency_limit *concurrency, struct concurrency_slot *slots,
                     int count)
{
    for (int i = 0; i < count; i++)
        if (slots[i].is_held)
            concurrency_limit_give(concurrency, &slots[i]);
}

static void a_client_with_many_shares_has_a_part_of_the_slots(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
    struct concurrency_slot address[6], team[6];
    for (int i = 0; i < 6; i++) {
        address[i] = slot_of_client(keys[i], "192.0.2.1", true);
        assert_int_equal(concurrency_limit_take(*state, &address[i]), i < 2); /* a quarter of 8 */
    }
    for (int i = 0; i < 6; i++) {
        team[i] = slot_of_client(keys[5 - i], "team 1", false);
        assert_int_equal(concurrency_limit_take(*state, &team[i]), i < 4); /* a half of 8 */
    }
    give_all(*state, address, 6);
    give_all(*state, team, 6);
}

static void all_anonymous_clients_have_half_of_the_slots(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    struct concurrency_slot addresses[5], team = slot_of_client("f", "team 1", false);
    for (int i = 0; i < 5; i++) {
        addresses[i] = slot_of_client(keys[i], keys[i], true);
        assert_int_equal(concurrency_limit_take(*state, &addresses[i]), i < 3); /* a half of 6 */
    }
    assert_true(concurrency_limit_take(*state, &team));
    concurrency_limit_give(*state, &team);
    /* A waiting team passes anonymous clients that came before it. */
    assert_int_equal(concurrency_limit_take_or_wait(*state, &addresses[3]),
                     CONCURRENCY_LIMIT_WAITING);
    struct concurrency_slot others[4];
    for (int i = 0; i < 4; i++) {
        others[i] = slot_of_client(i < 2 ? "g" : "h", i < 2 ? "team 2" : "team 3", false);
        assert_int_equal(concurrency_limit_take_or_wait(*state, &others[i]),
                         i < 3 ? CONCURRENCY_LIMIT_TAKEN : CONCURRENCY_LIMIT_WAITING);
    }
    concurrency_limit_give(*state, &others[0]);
    assert_int_equal(woken_count, 1);
    assert_true(others[3].is_held && !addresses[3].is_held);
    assert_true(concurrency_limit_leave(*state, &addresses[3]));
    give_all(*state, addresses, 3);
    give_all(*state, others, 4);
}

static void clients_do_not_fill_the_waiting_list(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct concurrency_slot slots[8], team[2];
    for (int i = 0; i < 2; i++) { /* a team's slots, so that the others wait for their client */
        team[i] = slot_of_client("x", "team 1", false);
        assert_true(concurrency_limit_take(*state, &team[i]));
    }
    for (int i = 0; i < 8; i++)
        slots[i] = slot_of_client(keys[i], "192.0.2.1", true);
    for (int i = 0; i < 2; i++)
        assert_true(concurrency_limit_take(*state, &slots[i]));
    for (int i = 2; i < 8; i++) /* 3 of 5 slots */
        assert_int_equal(concurrency_limit_take_or_wait(*state, &slots[i]),
                         i < 5 ? CONCURRENCY_LIMIT_WAITING : CONCURRENCY_LIMIT_REFUSED);
    struct concurrency_slot other = slot_of_client("a", "192.0.2.2", true);
    assert_true(concurrency_limit_take(*state, &other));
    /* The first request of a third address replaces the last one of the first address. Then the
     * counts are 2 and 1, and neither replaces a request of the other. */
    struct concurrency_slot third[2] = {slot_of_client("a", "192.0.2.3", true),
                                        slot_of_client("a", "192.0.2.3", true)};
    assert_int_equal(concurrency_limit_take_or_wait(*state, &third[0]), CONCURRENCY_LIMIT_WAITING);
    assert_ptr_equal(refused, &slots[4]);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &third[1]), CONCURRENCY_LIMIT_REFUSED);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &slots[5]), CONCURRENCY_LIMIT_REFUSED);
    assert_int_equal(concurrency_limit_waiting_count(*state), 3);
    for (int i = 2; i < 5; i++)
        assert_int_equal(concurrency_limit_leave(*state, &slots[i]), i < 4);
    assert_true(concurrency_limit_leave(*state, &third[0]));
    give_all(*state, slots, 2);
    give_all(*state, team, 2);
    concurrency_limit_give(*state, &other);
}

static void a_request_replaces_one_of_the_client_with_the_most(void **state)
{
    (void)state;
    struct concurrency_limit *concurrency = create(4, 8);
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct concurrency_slot held[3];
    for (int i = 0; i < 3; i++) {
        held[i] = slot_of(keys[i]);
        assert_true(concurrency_limit_take(concurrency, &held[i]));
    }
    struct concurrency_slot waiting[8]; /* four of team 1, three of team 2, one of team 3 */
    for (int i = 0; i < 8; i++) {
        waiting[i] = slot_of_client(keys[i], i < 4 ? "team 1" : i < 7 ? "team 2" : "team 3", false);
        assert_int_equal(concurrency_limit_take_or_wait(concurrency, &waiting[i]),
                         CONCURRENCY_LIMIT_WAITING);
    }
    struct concurrency_slot team = slot_of_client("a", "team 4", false),
                            address = slot_of_client("a", "192.0.2.1", true);
    assert_int_equal(concurrency_limit_take_or_wait(concurrency, &team), CONCURRENCY_LIMIT_WAITING);
    assert_ptr_equal(refused, &waiting[3]);
    assert_int_equal(concurrency_limit_take_or_wait(concurrency, &address),
                     CONCURRENCY_LIMIT_WAITING);
    assert_ptr_equal(refused, &waiting[6]); /* the last of two teams with three */
    assert_int_equal(concurrency_limit_waiting_count(concurrency), 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(concurrency_limit_leave(concurrency, &waiting[i]), i != 3 && i != 6);
    assert_true(concurrency_limit_leave(concurrency, &team));
    assert_true(concurrency_limit_leave(concurrency, &address));
    give_all(concurrency, held, 3);
    concurrency_limit_destroy(concurrency);
}

static void all_shares_together_leave_workers_free(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g"};
    struct concurrency_slot concurrency[7];
    for (int i = 0; i < 7; i++) {
        concurrency[i] = slot_of(keys[i]);
        assert_int_equal(concurrency_limit_take(*state, &concurrency[i]), i < 6);
    }
    for (int i = 0; i < 6; i++)
        concurrency_limit_give(*state, &concurrency[i]);
}

static void a_key_has_at_most_half_of_the_waiting_list(void **state)
{
    struct concurrency_slot slow[6], third[3];
    for (int i = 0; i < 6; i++) {
        slow[i] = slot_of("slow");
        assert_int_equal(
            concurrency_limit_take_or_wait(*state, &slow[i]) == CONCURRENCY_LIMIT_REFUSED, i == 5);
    }
    for (int i = 0; i < 3; i++) {
        third[i] = slot_of("third");
        assert_int_equal(concurrency_limit_take_or_wait(*state, &third[i]),
                         i < 2 ? CONCURRENCY_LIMIT_TAKEN : CONCURRENCY_LIMIT_WAITING);
    }
    for (int i = 0; i < 5; i++)
        concurrency_limit_give(*state, &slow[i]);
    for (int i = 0; i < 3; i++)
        concurrency_limit_give(*state, &third[i]);
}

static void waiting_requests_are_woken_in_order(void **state)
{
    struct concurrency_slot slow[6], other = slot_of("other");
    for (int i = 0; i < 6; i++) {
        static const enum concurrency_limit_outcome expected[] = {
            CONCURRENCY_LIMIT_TAKEN,   CONCURRENCY_LIMIT_TAKEN,   CONCURRENCY_LIMIT_WAITING,
            CONCURRENCY_LIMIT_WAITING, CONCURRENCY_LIMIT_WAITING, CONCURRENCY_LIMIT_REFUSED};
        slow[i] = slot_of("slow");
        assert_int_equal(concurrency_limit_take_or_wait(*state, &slow[i]), expected[i]);
    }
    assert_int_equal(concurrency_limit_take_or_wait(*state, &other), CONCURRENCY_LIMIT_TAKEN);
    concurrency_limit_give(*state, &other); /* no waiting request may have it */
    assert_int_equal(woken_count, 0);
    assert_int_equal(concurrency_limit_waiting_count(*state), 3);
    concurrency_limit_give(*state, &slow[1]);
    assert_int_equal(woken_count, 1);
    assert_true(slow[2].is_held);
    assert_false(slow[3].is_held);
    concurrency_limit_give(*state, &slow[0]);
    concurrency_limit_give(*state, &slow[2]);
    assert_int_equal(woken_count, 3);
    assert_int_equal(concurrency_limit_waiting_count(*state), 0);
    concurrency_limit_give(*state, &slow[3]);
    assert_int_equal(concurrency_limit_held_count(*state), 1);
    concurrency_limit_give(*state, &slow[4]);
    assert_int_equal(concurrency_limit_held_count(*state), 0);
    assert_int_equal(woken_count, 3);
}

static void clients_are_served_round_robin(void **state)
{
    (void)state;
    static const char *const clients[] = {"a", "a", "a", "b", "b"};
    static const int order[] = {3, 1, 4, 2}; /* after the first */
    struct concurrency_limit *concurrency = create(8, 20);
    struct concurrency_slot slots[5];
    for (int i = 0; i < 5; i++) {
        slots[i] = slot_of("key");
        slots[i].most = 1;
        slots[i].client = clients[i];
        assert_int_equal(concurrency_limit_take_or_wait(concurrency, &slots[i]),
                         i ? CONCURRENCY_LIMIT_WAITING : CONCURRENCY_LIMIT_TAKEN);
    }
    int held = 0;
    for (int i = 0; i < 4; i++) {
        concurrency_limit_give(concurrency, &slots[held]);
        held = order[i];
        assert_true(slots[held].is_held);
    }
    concurrency_limit_give(concurrency, &slots[held]);
    concurrency_limit_destroy(concurrency);
}

static void a_request_that_left_is_not_woken(void **state)
{
    struct concurrency_slot slow[5];
    for (int i = 0; i < 5; i++) {
        slow[i] = slot_of("slow");
        assert_int_equal(concurrency_limit_take_or_wait(*state, &slow[i]),
                         i < 2 ? CONCURRENCY_LIMIT_TAKEN : CONCURRENCY_LIMIT_WAITING);
    }
    assert_false(concurrency_limit_leave(*state, &slow[0])); /* taken, so it does not wait */
    assert_true(concurrency_limit_leave(*state, &slow[3]));
    assert_false(concurrency_limit_leave(*state, &slow[3]));
    assert_int_equal(concurrency_limit_waiting_count(*state), 2);
    concurrency_limit_give(*state, &slow[0]);
    assert_true(slow[2].is_held);
    assert_false(concurrency_limit_leave(*state, &slow[2])); /* woken before */
    concurrency_limit_give(*state, &slow[1]);
    assert_int_equal(woken_count, 2);
    assert_true(slow[4].is_held && !slow[3].is_held);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &slow[3]), CONCURRENCY_LIMIT_WAITING);
    concurrency_limit_give(*state, &slow[2]);
    concurrency_limit_give(*state, &slow[4]);
    concurrency_limit_give(*state, &slow[3]);
}

static struct concurrency_slot slot_of_source(const char *key, const char *source)
{
    struct concurrency_slot concurrency_slot = slot_of(key);
    concurrency_slot.source = source;
    return concurrency_slot;
}

static void a_source_runs_one_request_at_a_time_for_all_keys(void **state)
{
    struct concurrency_slot first = slot_of_source("a", "192.0.2.1"),
                            second = slot_of_source("b", "192.0.2.1");
    struct concurrency_slot other = slot_of_source("c", "192.0.2.2"),
                            third = slot_of_source("d", "192.0.2.1");
    assert_int_equal(concurrency_limit_take_or_wait(*state, &first), CONCURRENCY_LIMIT_TAKEN);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &second), CONCURRENCY_LIMIT_WAITING);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &other), CONCURRENCY_LIMIT_TAKEN);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &third), CONCURRENCY_LIMIT_WAITING);
    concurrency_limit_give(*state, &other);
    assert_int_equal(woken_count, 0);
    concurrency_limit_give(*state, &first);
    assert_true(second.is_held && !third.is_held);
    concurrency_limit_give(*state, &second);
    assert_true(third.is_held);
    concurrency_limit_give(*state, &third);
}

static void a_returned_slot_wakes_waiters_for_its_key_and_for_its_source(void **state)
{
    struct concurrency_slot first = slot_of_source("a", "192.0.2.1"),
                            same_key[2] = {slot_of("a"), slot_of("a")};
    struct concurrency_slot same_source = slot_of_source("b", "192.0.2.1");
    assert_int_equal(concurrency_limit_take_or_wait(*state, &first), CONCURRENCY_LIMIT_TAKEN);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &same_key[0]), CONCURRENCY_LIMIT_TAKEN);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &same_key[1]),
                     CONCURRENCY_LIMIT_WAITING);
    assert_int_equal(concurrency_limit_take_or_wait(*state, &same_source),
                     CONCURRENCY_LIMIT_WAITING);
    concurrency_limit_give(*state, &first);
    assert_true(same_key[1].is_held && same_source.is_held);
    concurrency_limit_give(*state, &same_key[0]);
    concurrency_limit_give(*state, &same_key[1]);
    concurrency_limit_give(*state, &same_source);
}

static void a_source_has_a_limit_of_waiting_requests(void **state)
{
    (void)state;
    struct concurrency_limit *concurrency = create(8, 1000);
    struct concurrency_slot concurrency_slot[CONCURRENCY_LIMIT_WAITING_OF_SOURCE + 2],
        other = slot_of_source("a", "192.0.2.2");
    const int last = CONCURRENCY_LIMIT_WAITING_OF_SOURCE + 1;
    for (int i = 0; i <= last; i++) {
        concurrency_slot[i] = slot_of_source("a", "192.0.2.1");
        assert_int_equal(concurrency_limit_take_or_wait(concurrency, &concurrency_slot[i]),
                         i == 0      ? CONCURRENCY_LIMIT_TAKEN
                         : i == last ? CONCURRENCY_LIMIT_REFUSED
                                     : CONCURRENCY_LIMIT_WAITING);
    }
    assert_int_equal(concurrency_limit_take_or_wait(concurrency, &other), CONCURRENCY_LIMIT_TAKEN);
    for (int i = 0; i < last; i++)
        concurrency_limit_give(concurrency, &concurrency_slot[i]);
    concurrency_limit_give(concurrency, &other);
    concurrency_limit_destroy(concurrency);
}

static void a_single_worker_still_runs_requests(void **state)
{
    (void)state;
    struct concurrency_limit *concurrency = create(1, 1);
    struct concurrency_slot concurrency_slot = slot_of("a");
    assert_true(concurrency_limit_take(concurrency, &concurrency_slot));
    concurrency_limit_give(concurrency, &concurrency_slot);
    concurrency_limit_destroy(concurrency);
}

static void every_client_has_half_of_the_threads(void **state)
{
    (void)state;
    struct concurrency_limit *shares = create_shares(7, 100);
    struct concurrency_slot slots[] = {
        slot_of_client("one", "one", false),
        slot_of_client("one", "one", false),
        slot_of_client("one", "one", false),
        slot_of_client("192.0.2.1", "192.0.2.1", true),
        slot_of_client("192.0.2.2", "192.0.2.2", true),
        slot_of_client("192.0.2.3", "192.0.2.3", true),
    };
    struct concurrency_slot more = slot_of_client("one", "one", false);
    struct concurrency_slot anonymous = slot_of_client("192.0.2.4", "192.0.2.4", true);
    struct concurrency_slot last = slot_of_client("two", "two", false);
    const int count = sizeof(slots) / sizeof(slots[0]);
    for (int i = 0; i < count; i++)
        assert_true(concurrency_limit_take(shares, &slots[i]));
    assert_false(concurrency_limit_take(shares, &more));
    assert_false(concurrency_limit_take(shares, &anonymous));
    assert_true(concurrency_limit_take(shares, &last)); /* no thread is reserved */
    concurrency_limit_give(shares, &last);
    give_all(shares, slots, count);
    concurrency_limit_destroy(shares);
}

static void a_light_request_runs_beside_slow_ones(void **state)
{
    (void)state;
    struct concurrency_limit *shares = create_shares(4, 100);
    struct concurrency_slot slots[4];
    woken_count = 0;
    for (int i = 0; i < 4; i++) {
        slots[i] = slot_of_client("one", "one", false);
        slots[i].is_light = true;
        slots[i].most = 4;
    }
    assert_true(concurrency_limit_take(shares, &slots[0]));
    assert_true(concurrency_limit_take(shares, &slots[1]));
    concurrency_limit_make_slow(shares, &slots[0]);
    assert_int_equal(concurrency_limit_take_or_wait(shares, &slots[2]), CONCURRENCY_LIMIT_WAITING);
    concurrency_limit_make_slow(shares, &slots[1]);
    assert_true(woken_count == 1 && slots[2].is_held);
    assert_false(concurrency_limit_take(shares, &slots[3])); /* one light request, not two */
    concurrency_limit_make_slow(shares, &slots[2]);
    assert_false(concurrency_limit_take(shares, &slots[3])); /* not beside more than half */
    give_all(shares, slots, 3);
    concurrency_limit_destroy(shares);
}

/* The slot of a request with a body. */
static struct concurrency_slot slot_of_body(const char *client, bool is_anonymous, size_t bytes)
{
    struct concurrency_slot slot =
        slot_of_client(is_anonymous ? "all" : client, client, is_anonymous);
    slot.bytes = bytes;
    return slot;
}

static void leave_all(struct concurrency_limit *concurrency, struct concurrency_slot *slots,
                      int count)
{
    for (int i = 0; i < count; i++)
        concurrency_limit_leave(concurrency, &slots[i]);
}

static void a_client_has_a_limit_of_waiting_bytes(void **state)
{
    (void)state;
    const size_t half = CONCURRENCY_LIMIT_WAITING_BYTES / 2;
    struct concurrency_limit *shares = create_shares(2, 100);
    struct concurrency_slot held = slot_of_client("one", "one", false);
    struct concurrency_slot held_too = slot_of_client("two", "two", false);
    struct concurrency_slot slots[] = {
        slot_of_body("one", false, half),     slot_of_body("one", false, half),
        slot_of_body("one", false, 1),        slot_of_body("one", false, 0),
        slot_of_body("two", false, 3 * half),
    };
    static const bool may_wait[] = {true, true, false, true, true};
    const int count = sizeof(slots) / sizeof(slots[0]);
    assert_true(concurrency_limit_take(shares, &held));
    assert_true(concurrency_limit_take(shares, &held_too));
    for (int i = 0; i < count; i++)
        assert_int_equal(concurrency_limit_take_or_wait(shares, &slots[i]),
                         may_wait[i] ? CONCURRENCY_LIMIT_WAITING : CONCURRENCY_LIMIT_REFUSED);
    leave_all(shares, slots, count);
    concurrency_limit_give(shares, &held);
    concurrency_limit_give(shares, &held_too);
    concurrency_limit_destroy(shares);
}

static void clients_without_credentials_share_a_limit_of_waiting_bytes(void **state)
{
    (void)state;
    const size_t half = CONCURRENCY_LIMIT_WAITING_BYTES / 2;
    struct concurrency_limit *shares = create_shares(2, 100);
    struct concurrency_slot held = slot_of_client("192.0.2.9", "192.0.2.9", true);
    struct concurrency_slot slots[] = {
        slot_of_body("192.0.2.1", true, half), slot_of_body("192.0.2.1", true, half),
        slot_of_body("192.0.2.2", true, half), slot_of_body("192.0.2.3", true, half),
        slot_of_body("192.0.2.4", true, half), slot_of_body("192.0.2.5", true, half),
    };
    assert_true(concurrency_limit_take(shares, &held));
    for (int i = 0; i < 5; i++)
        assert_int_equal(concurrency_limit_take_or_wait(shares, &slots[i]),
                         CONCURRENCY_LIMIT_WAITING);
    /* slots[4] takes the place of the later request of the client that has two. */
    assert_ptr_equal(refused, &slots[1]);
    assert_int_equal(concurrency_limit_take_or_wait(shares, &slots[5]), CONCURRENCY_LIMIT_REFUSED);
    leave_all(shares, slots, 6);
    concurrency_limit_give(shares, &held);
    concurrency_limit_destroy(shares);
}

static void a_single_thread_is_shared(void **state)
{
    (void)state;
    struct concurrency_limit *shares = create_shares(1, 1);
    struct concurrency_slot anonymous = slot_of_client("192.0.2.1", "192.0.2.1", true);
    assert_true(concurrency_limit_take(shares, &anonymous));
    concurrency_limit_give(shares, &anonymous);
    concurrency_limit_destroy(shares);
}

/* Each client sends its next request as soon as it was served. If the table of recently served
 * clients forgot some of them, it would serve these before all others, again and again. */
static void all_of_many_clients_are_served(void **state)
{
    enum { CLIENT_COUNT = 1000, ROUND_COUNT = 10 };
    (void)state;
    struct concurrency_limit *concurrency = create(1, 10 * CLIENT_COUNT);
    static struct concurrency_slot slots[CLIENT_COUNT];
    static char names[CLIENT_COUNT][16];
    struct concurrency_slot *held = NULL, holder = slot_of("first");
    assert_true(concurrency_limit_take(concurrency, &holder));
    for (int i = 0; i < CLIENT_COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "client %d", i);
        slots[i] = slot_of_client(names[i], names[i], false);
        assert_int_equal(concurrency_limit_take_or_wait(concurrency, &slots[i]),
                         CONCURRENCY_LIMIT_WAITING);
    }
    concurrency_limit_give(concurrency, &holder);
    static int served_counts[CLIENT_COUNT];
    for (int round = 0; round < ROUND_COUNT * CLIENT_COUNT; round++) {
        held = NULL;
        for (int i = 0; i < CLIENT_COUNT && !held; i++)
            held = slots[i].is_held ? &slots[i] : NULL;
        assert_non_null(held);
        served_counts[held - slots]++;
        concurrency_limit_give(concurrency, held);
        assert_int_equal(concurrency_limit_take_or_wait(concurrency, held),
                         CONCURRENCY_LIMIT_WAITING);
    }
    for (int i = 0; i < CLIENT_COUNT; i++) {
        assert_in_range(served_counts[i], ROUND_COUNT / 4, ROUND_COUNT + 1);
        if (!slots[i].is_held)
            concurrency_limit_leave(concurrency, &slots[i]);
    }
    give_all(concurrency, slots, CLIENT_COUNT);
    concurrency_limit_destroy(concurrency);
}

static struct concurrency_slot slot_of_address(const char *address, const char *share)
{
    struct concurrency_slot slot = slot_of(share);
    slot.client = address;
    slot.is_anonymous = true;
    return slot;
}

/* 16 addresses keep three requests of 19 s each in the list. A client with one quick request after
 * the other waits for the next free slot each time, not for a request of each address. */
static void a_client_with_quick_requests_comes_before_those_with_slow_ones(void **state)
{
    (void)state;
    enum { SLOW = 16, OF_EACH = 3, ROUNDS = 40, QUICK_MS = 10, SLOW_MS = 19000 };
    struct concurrency_limit *concurrency = create(4, 256); /* two slots without credentials */
    struct concurrency_slot slow[SLOW * OF_EACH];
    char names[SLOW][16], shares[SLOW][16];
    for (int i = 0; i < SLOW * OF_EACH; i++) {
        snprintf(names[i % SLOW], sizeof(names[0]), "192.0.2.%d", i % SLOW);
        snprintf(shares[i % SLOW], sizeof(shares[0]), "share%d", i % SLOW);
        slow[i] = slot_of_address(names[i % SLOW], shares[i % SLOW]);
        (void)!concurrency_limit_take_or_wait(concurrency, &slow[i]);
    }
    /* Until each address has been served once, its requests have taken no time. */
    for (int round = -SLOW; round < ROUNDS; round++) {
        struct concurrency_slot quick = slot_of_address("198.51.100.1", "quick");
        if (round >= 0)
            assert_int_equal(concurrency_limit_take_or_wait(concurrency, &quick),
                             CONCURRENCY_LIMIT_WAITING);
        now_ns += SLOW_MS / 2 * CLOCK_NS_PER_MS;
        int ended = 0;
        while (!slow[ended].is_held)
            ended++;
        concurrency_limit_give(concurrency, &slow[ended]);
        if (round < 0) {
            (void)!concurrency_limit_take_or_wait(concurrency, &slow[ended]);
            continue;
        }
        assert_true(quick.is_held);
        (void)!concurrency_limit_take_or_wait(concurrency, &slow[ended]);
        now_ns += QUICK_MS * CLOCK_NS_PER_MS;
        concurrency_limit_give(concurrency, &quick);
        assert_int_equal(concurrency_limit_held_count(concurrency), 2);
    }
    for (int i = 0; i < SLOW * OF_EACH; i++)
        (void)!concurrency_limit_leave(concurrency, &slow[i]);
    for (int i = 0; i < SLOW * OF_EACH; i++)
        if (slow[i].is_held)
            concurrency_limit_give(concurrency, &slow[i]);
    concurrency_limit_destroy(concurrency);
}

/* Slow requests of long ago do not count. */
static void held_time_is_forgotten(void **state)
{
    (void)state;
    struct concurrency_limit *concurrency = create(1, 8);
    for (int minutes = 1; minutes <= 30; minutes += 29) {
        struct concurrency_slot slow = slot_of_address("192.0.2.1", "a");
        struct concurrency_slot held = slot_of_address("192.0.2.2", "b");
        assert_true(concurrency_limit_take(concurrency, &slow));
        now_ns += 20 * CLOCK_NS_PER_S;
        concurrency_limit_give(concurrency, &slow);
        now_ns += minutes * 60 * CLOCK_NS_PER_S;
        assert_true(concurrency_limit_take(concurrency, &held));
        struct concurrency_slot first = slot_of_address("192.0.2.1", "a");
        struct concurrency_slot second = slot_of_address("192.0.2.2", "c");
        for (int i = 0; i < 2; i++)
            assert_int_equal(concurrency_limit_take_or_wait(concurrency, i ? &second : &first),
                             CONCURRENCY_LIMIT_WAITING);
        concurrency_limit_give(concurrency, &held);
        assert_int_equal(first.is_held, minutes > 1);
        for (int i = 0; i < 2; i++)
            concurrency_limit_give(concurrency, (minutes > 1) == (i == 0) ? &first : &second);
    }
    concurrency_limit_destroy(concurrency);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_many_clients_are_served),
        cmocka_unit_test_setup_teardown(one_share_does_not_block_other_shares, start, stop),
        cmocka_unit_test_setup_teardown(a_higher_limit_per_key_is_respected, start, stop),
        cmocka_unit_test_setup_teardown(a_client_with_many_shares_has_a_part_of_the_slots, start,
                                        stop),
        cmocka_unit_test_setup_teardown(all_anonymous_clients_have_half_of_the_slots, start, stop),
        cmocka_unit_test_setup_teardown(clients_do_not_fill_the_waiting_list, start, stop),
        cmocka_unit_test(a_request_replaces_one_of_the_client_with_the_most),
        cmocka_unit_test_setup_teardown(all_shares_together_leave_workers_free, start, stop),
        cmocka_unit_test_setup_teardown(a_key_has_at_most_half_of_the_waiting_list, start, stop),
        cmocka_unit_test_setup_teardown(waiting_requests_are_woken_in_order, start, stop),
        cmocka_unit_test(clients_are_served_round_robin),
        cmocka_unit_test_setup_teardown(a_request_that_left_is_not_woken, start, stop),
        cmocka_unit_test_setup_teardown(a_source_runs_one_request_at_a_time_for_all_keys, start,
                                        stop),
        cmocka_unit_test_setup_teardown(
            a_returned_slot_wakes_waiters_for_its_key_and_for_its_source, start, stop),
        cmocka_unit_test(a_source_has_a_limit_of_waiting_requests),
        cmocka_unit_test(a_single_worker_still_runs_requests),
        cmocka_unit_test(every_client_has_half_of_the_threads),
        cmocka_unit_test(a_light_request_runs_beside_slow_ones),
        cmocka_unit_test(a_single_thread_is_shared),
        cmocka_unit_test(a_client_has_a_limit_of_waiting_bytes),
        cmocka_unit_test(clients_without_credentials_share_a_limit_of_waiting_bytes),
        cmocka_unit_test(a_client_with_quick_requests_comes_before_those_with_slow_ones),
        cmocka_unit_test(held_time_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "api/server/connection_table.h"

enum { TOTAL = 10, PER_ADDRESS = 4, RESERVED = 2, OPEN = TOTAL - RESERVED };

static struct connection_entry entries[64];

static int start(void **state)
{
    const struct connection_limits limits = {TOTAL, PER_ADDRESS, RESERVED};
    *state = connection_table_create(&limits);
    return 0;
}

static int stop(void **state)
{
    connection_table_destroy(*state);
    return 0;
}

static struct connection_decision add(void *table, uint64_t subscriber, int number)
{
    return connection_table_add(table, subscriber, number, &entries[number]);
}

static void remove_all(void *table, int first, int past)
{
    for (int i = first; i < past; i++)
        connection_table_remove(table, &entries[i]);
    assert_int_equal(connection_table_count(table), 0);
}

static void an_address_at_its_limit_loses_its_longest_idle_connection(void **state)
{
    for (int i = 0; i < PER_ADDRESS; i++)
        assert_int_equal(add(*state, 1, i).verdict, CONNECTION_ADMITTED);
    connection_table_begin(*state, &entries[0]);
    struct connection_decision decision = add(*state, 1, PER_ADDRESS);
    assert_int_equal(decision.verdict, CONNECTION_ADMITTED);
    assert_int_equal(decision.eviction, CONNECTION_EVICTED_BY_ADDRESS);
    assert_int_equal(decision.evicted_owner, 1);
    assert_true(connection_is_evicted(&entries[1]));
    assert_false(connection_is_evicted(&entries[0]));
    assert_int_equal(connection_table_count(*state), PER_ADDRESS);
    remove_all(*state, 0, PER_ADDRESS + 1);
}

static void at_the_limit_of_an_address_authenticated_connections_are_closed_last(void **state)
{
    for (int i = 0; i < PER_ADDRESS; i++) {
        add(*state, 1, i);
        if (i != 2)
            connection_table_authenticate(*state, &entries[i]);
    }
    int i = PER_ADDRESS;
    assert_int_equal(add(*state, 1, i).evicted_owner, 2);
    for (int round = 0; round < 3; round++, i++)
        assert_int_equal(add(*state, 1, i + 1).evicted_owner, i);
    connection_table_authenticate(*state, &entries[i]);
    assert_int_equal(add(*state, 1, i + 1).evicted_owner, 0);
    remove_all(*state, 0, i + 2);
}

static void a_receiving_connection_is_not_closed_for_its_address(void **state)
{
    for (int i = 0; i < PER_ADDRESS; i++) {
        add(*state, 1, i);
        connection_table_set_receiving(*state, &entries[i], true);
    }
    assert_int_equal(add(*state, 1, PER_ADDRESS).verdict, CONNECTION_REFUSED_BY_ADDRESS);
    connection_table_authenticate(*state, &entries[0]);
    assert_int_equal(add(*state, 1, PER_ADDRESS).verdict, CONNECTION_REFUSED_BY_ADDRESS);
    connection_table_set_receiving(*state, &entries[0], false);
    assert_int_equal(add(*state, 1, PER_ADDRESS).evicted_owner, 0);
    connection_table_begin(*state, &entries[1]);
    connection_table_end(*state, &entries[1]);
    connection_table_begin(*state, &entries[PER_ADDRESS]);
    assert_int_equal(add(*state, 1, PER_ADDRESS + 1).evicted_owner, 1);
    remove_all(*state, 0, PER_ADDRESS + 2);
}

static void
an_address_with_requests_on_all_its_connections_is_refused_and_others_are_not(void **state)
{
    for (int i = 0; i < PER_ADDRESS; i++) {
        add(*state, 1, i);
        connection_table_begin(*state, &entries[i]);
    }
    assert_int_equal(add(*state, 1, PER_ADDRESS).verdict, CONNECTION_REFUSED_BY_ADDRESS);
    assert_int_equal(add(*state, 2, PER_ADDRESS).verdict, CONNECTION_ADMITTED);
    remove_all(*state, 0, PER_ADDRESS + 1);
}

static void when_full_the_longest_idle_unauthenticated_connection_is_closed(void **state)
{
    for (int i = 0; i < OPEN; i++)
        assert_int_equal(add(*state, (uint64_t)i, i).eviction, CONNECTION_EVICTED_NONE);
    connection_table_authenticate(*state, &entries[0]);
    connection_table_begin(*state, &entries[1]);
    connection_table_set_receiving(*state, &entries[2], true);
    for (int i = 0; i < OPEN - 3; i++) {
        struct connection_decision decision = add(*state, (uint64_t)(100 + i), OPEN + i);
        assert_int_equal(decision.verdict, CONNECTION_ADMITTED);
        assert_int_equal(decision.eviction, CONNECTION_EVICTED_BY_TOTAL);
        assert_int_equal(decision.evicted_owner, 3 + i);
    }
    assert_int_equal(add(*state, 200, 2 * OPEN).evicted_owner, 2);
    assert_int_equal(connection_table_count(*state), OPEN);
    for (int i = 0; i < 2 * OPEN - 3; i++)
        connection_table_remove(*state, &entries[i]);
    connection_table_remove(*state, &entries[2 * OPEN]);
}

/* IPv4: an address. The table has place for OPEN = 8 connections, of which a site may have 4 before
 * it evicts its own. */
static void when_full_a_site_with_many_connections_evicts_its_own(void **state)
{
    enum { HONEST = 3, ADDRESSES = 20 };
    for (int i = 0; i < HONEST; i++)
        add(*state, (uint64_t)i, i);
    connection_table_set_receiving(*state, &entries[0], true);
    const uint64_t site = UINT64_C(0x20010db800010000); /* networks of one /48 */
    int first = HONEST;
    for (int i = HONEST; i < OPEN; i++)
        assert_int_equal(add(*state, site + (uint64_t)i, i).eviction, CONNECTION_EVICTED_NONE);
    for (int i = OPEN; i < ADDRESSES; i++)
        assert_int_equal(add(*state, site + (uint64_t)i, i).evicted_owner, first++);
    /* Receiving does not help it. */
    for (int i = first; i < ADDRESSES; i++)
        connection_table_set_receiving(*state, &entries[i], true);
    assert_int_equal(add(*state, site, ADDRESSES).evicted_owner, first++);
    /* Another site evicts the longest waiting of its connections, too; once it has few, that of
     * all. */
    connection_table_set_receiving(*state, &entries[0], true);
    assert_int_equal(add(*state, 300, ADDRESSES + 1).evicted_owner, first++);
    assert_int_equal(add(*state, 301, ADDRESSES + 2).evicted_owner, 1);
    /* If all its connections are busy or authenticated, it evicts one of another site. */
    assert_int_equal(add(*state, site, ADDRESSES + 3).evicted_owner, 2);
    for (int i = first; i <= ADDRESSES; i++)
        connection_table_begin(*state, &entries[i]);
    connection_table_authenticate(*state, &entries[ADDRESSES + 3]);
    connection_table_set_receiving(*state, &entries[0], true);
    const struct connection_decision decision = add(*state, site, ADDRESSES + 4);
    assert_int_equal(decision.verdict, CONNECTION_ADMITTED);
    assert_int_equal(decision.evicted_owner, ADDRESSES + 1);
    assert_int_equal(add(*state, site, ADDRESSES + 5).evicted_owner, ADDRESSES + 4);
    assert_false(connection_is_evicted(&entries[0]));
    remove_all(*state, 0, ADDRESSES + 6);
}

static void a_stalled_connection_is_evicted_as_a_waiting_one(void **state)
{
    for (int i = 0; i < OPEN; i++) {
        add(*state, (uint64_t)i, i);
        connection_table_begin(*state, &entries[i]);
    }
    connection_table_set_stalled(*state, &entries[3], true);
    connection_table_set_stalled(*state, &entries[4], true);
    connection_table_set_stalled(*state, &entries[4], false);
    connection_table_set_stalled(*state, &entries[5], true);
    connection_table_begin(*state, &entries[5]);
    const struct connection_decision decision = add(*state, 100, OPEN);
    assert_int_equal(decision.verdict, CONNECTION_ADMITTED);
    assert_int_equal(decision.evicted_owner, 3);
    connection_table_set_stalled(*state, &entries[3], true); /* no-op: it is evicted */
    connection_table_end(*state, &entries[3]);
    assert_true(connection_is_evicted(&entries[3]));
    connection_table_begin(*state, &entries[OPEN]);
    assert_int_equal(add(*state, 101, OPEN + 1).verdict, CONNECTION_ADMITTED_RESERVED);
    connection_table_end(*state, &entries[4]); /* it is waiting for a request */
    assert_int_equal(add(*state, 102, OPEN + 2).evicted_owner, OPEN + 1);
    assert_int_equal(add(*state, 103, OPEN + 3).evicted_owner, 4);
    remove_all(*state, 0, OPEN + 4);
}

static void reserved_slots_stay_free_for_their_use(void **state)
{
    int i = 0;
    for (; i < OPEN; i++) {
        add(*state, (uint64_t)i, i);
        connection_table_begin(*state, &entries[i]);
    }
    for (; i < TOTAL; i++) {
        assert_int_equal(add(*state, (uint64_t)i, i).verdict, CONNECTION_ADMITTED_RESERVED);
        connection_table_begin(*state, &entries[i]);
        connection_table_authenticate(*state, &entries[i]);
    }
    assert_int_equal(add(*state, 100, i).verdict, CONNECTION_REFUSED_BY_TOTAL);
    connection_table_end(*state, &entries[OPEN]);
    struct connection_decision decision = add(*state, 100, i);
    assert_int_equal(decision.verdict, CONNECTION_ADMITTED_RESERVED);
    assert_int_equal(decision.evicted_owner, OPEN);
    remove_all(*state, 0, TOTAL + 1);
}

static void a_request_on_an_evicted_connection_keeps_it(void **state)
{
    for (int i = 0; i < PER_ADDRESS + 1; i++)
        add(*state, 1, i);
    assert_true(connection_is_evicted(&entries[0]));
    connection_table_begin(*state, &entries[0]);
    assert_false(connection_is_evicted(&entries[0]));
    assert_int_equal(connection_table_count(*state), PER_ADDRESS + 1);
    connection_table_end(*state, &entries[0]);
    remove_all(*state, 0, PER_ADDRESS + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_address_at_its_limit_loses_its_longest_idle_connection),
        TEST(at_the_limit_of_an_address_authenticated_connections_are_closed_last),
        TEST(a_receiving_connection_is_not_closed_for_its_address),
        TEST(an_address_with_requests_on_all_its_connections_is_refused_and_others_are_not),
        TEST(when_full_the_longest_idle_unauthenticated_connection_is_closed),
        TEST(when_full_a_site_with_many_connections_evicts_its_own),
        TEST(a_stalled_connection_is_evicted_as_a_waiting_one),
        TEST(reserved_slots_stay_free_for_their_use),
        TEST(a_request_on_an_evicted_connection_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

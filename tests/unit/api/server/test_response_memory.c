#include "tests/unit/test.h"

#include "api/http/request.h"
#include "api/server/response_memory.h"
#include "lib/base/err.h"

#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 800, ADDRESS_BYTES = 100, HALF_BYTES = 400 };

static struct request from_address(const char *address)
{
    struct request request = {.principal = {.kind = PRINCIPAL_ANONYMOUS}};
    snprintf(request.address, sizeof(request.address), "%s", address);
    return request;
}

static struct request of_tenant(int64_t tenant_id)
{
    return (struct request){.principal = {.kind = PRINCIPAL_TOKEN, .tenant_id = tenant_id}};
}

static struct response_holder *take(struct response_memory *memory, struct request request,
                                    size_t bytes)
{
    struct response_holder *holder = NULL;
    struct err err;
    assert_int_equal(response_memory_take(memory, &request, &(struct response_bytes){.own = bytes},
                                          &holder, &err),
                     ERR_NONE);
    return holder;
}

static void refuse(struct response_memory *memory, struct request request, size_t bytes,
                   const char *words)
{
    struct response_holder *holder = NULL;
    struct err err = {0};
    const size_t before = response_memory_bytes(memory);
    assert_int_equal(response_memory_take(memory, &request, &(struct response_bytes){.own = bytes},
                                          &holder, &err),
                     ERR_BUSY);
    assert_non_null(strstr(err.message, words));
    assert_non_null(strstr(err.message, "max-buffered-bytes"));
    assert_true(err.retry_after_s > 0);
    assert_int_equal(response_memory_bytes(memory), before);
}

static void give(struct response_memory *memory, struct response_holder *holder, size_t bytes)
{
    response_memory_give(memory, holder, &(struct response_bytes){.own = bytes});
}

static void an_address_has_an_eighth(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    struct response_holder *first = take(memory, from_address("192.0.2.1"), 60);
    struct response_holder *second = take(memory, from_address("192.0.2.1"), 40);
    assert_ptr_equal(first, second);
    refuse(memory, from_address("192.0.2.1"), 1, "this address");
    struct response_holder *other = take(memory, from_address("192.0.2.2"), ADDRESS_BYTES);
    give(memory, second, 40);
    second = take(memory, from_address("192.0.2.1"), 40);
    give(memory, first, 60);
    give(memory, second, 40);
    give(memory, other, ADDRESS_BYTES);
    assert_int_equal(response_memory_bytes(memory), 0);
    response_memory_destroy(memory);
}

static void an_ipv6_network_is_one_client(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    struct response_holder *holder = take(memory, from_address("2001:db8::1"), ADDRESS_BYTES);
    refuse(memory, from_address("2001:db8::2"), 1, "this address");
    give(memory, holder, ADDRESS_BYTES);
    response_memory_destroy(memory);
}

static void clients_without_credentials_have_a_half(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    struct response_holder *holders[5];
    const char *addresses[] = {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"};
    for (int i = 0; i < 4; i++)
        holders[i] = take(memory, from_address(addresses[i]), ADDRESS_BYTES);
    refuse(memory, from_address("192.0.2.5"), 1, "clients without credentials");
    holders[4] = take(memory, of_tenant(7), HALF_BYTES);
    refuse(memory, of_tenant(8), 1, "responses");
    give(memory, holders[4], HALF_BYTES);
    for (int i = 0; i < 4; i++)
        give(memory, holders[i], ADDRESS_BYTES);
    response_memory_destroy(memory);
}

static void a_tenant_has_a_half(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    struct response_holder *first = take(memory, of_tenant(7), HALF_BYTES);
    refuse(memory, of_tenant(7), 1, "the team's");
    struct response_holder *other = take(memory, of_tenant(8), HALF_BYTES);
    give(memory, first, HALF_BYTES);
    give(memory, other, HALF_BYTES);
    response_memory_destroy(memory);
}

/* Otherwise a response above a client's part could never be sent. */
static void the_first_response_may_have_any_size(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    struct response_holder *large = take(memory, from_address("192.0.2.1"), 10 * MAX_BYTES);
    refuse(memory, of_tenant(7), 1, "responses");
    give(memory, large, 10 * MAX_BYTES);
    assert_int_equal(response_memory_bytes(memory), 0);
    response_memory_destroy(memory);
}

/* A cached result counts once for a client and once in all, however many responses read it. */
static void shared_bytes_count_once(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    _Atomic uint32_t readers = 0, other_readers = 0;
    const struct response_bytes result = {.own = 5, .shared = 80, .readers = &readers};
    const struct response_bytes other = {.own = 5, .shared = 80, .readers = &other_readers};
    struct response_holder *holders[3];
    struct err err;
    struct request request = from_address("192.0.2.1");
    for (int i = 0; i < 2; i++)
        assert_int_equal(response_memory_take(memory, &request, &result, &holders[i], &err),
                         ERR_NONE);
    assert_int_equal(response_memory_take(memory, &request, &other, &holders[2], &err), ERR_BUSY);
    assert_int_equal(other_readers, 0);
    request = from_address("192.0.2.2");
    assert_int_equal(response_memory_take(memory, &request, &result, &holders[2], &err), ERR_NONE);
    assert_int_equal(response_memory_bytes(memory), 80 + 3 * 5);
    response_memory_give(memory, holders[0], &result);
    response_memory_give(memory, holders[2], &result);
    assert_int_equal(response_memory_bytes(memory), 80 + 5);
    response_memory_give(memory, holders[1], &result);
    assert_int_equal(response_memory_bytes(memory), 0);
    assert_int_equal(readers, 0);
    response_memory_destroy(memory);
}

/* Many addresses that read one cached result slowly hold its memory once, so they leave room for
 * other clients without credentials. */
static void shared_bytes_count_once_for_all_addresses(void **state)
{
    (void)state;
    enum { READERS = 20 };
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    _Atomic uint32_t readers = 0;
    const struct response_bytes result = {.own = 1, .shared = 80, .readers = &readers};
    struct response_holder *holders[READERS];
    struct err err;
    for (int i = 0; i < READERS; i++) {
        char address[32];
        snprintf(address, sizeof(address), "192.0.2.%d", i);
        const struct request request = from_address(address);
        assert_int_equal(response_memory_take(memory, &request, &result, &holders[i], &err),
                         ERR_NONE);
    }
    assert_int_equal(response_memory_bytes(memory), 80 + READERS);
    struct response_holder *other = take(memory, from_address("192.0.2.99"), HALF_BYTES - 100);
    refuse(memory, from_address("192.0.2.98"), 1, "clients without credentials");
    for (int i = 0; i < READERS; i++)
        response_memory_give(memory, holders[i], &result);
    give(memory, take(memory, from_address("192.0.2.98"), 100), 100);
    give(memory, other, HALF_BYTES - 100);
    assert_int_equal(response_memory_bytes(memory), 0);
    response_memory_destroy(memory);
}

static void responses_must_be_read_faster_when_little_is_free(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    struct response_holder *address = take(memory, from_address("192.0.2.1"), ADDRESS_BYTES);
    struct response_holder *team = take(memory, of_tenant(1), 300);
    assert_int_equal(response_memory_time_to_read_s(memory, address), 0);
    assert_int_equal(response_memory_time_to_read_s(memory, team), 0);
    struct response_holder *more = take(memory, of_tenant(1), 10);
    const unsigned some_s = response_memory_time_to_read_s(memory, team);
    assert_true(some_s > 0);
    struct response_holder *most = take(memory, of_tenant(1), 90);
    const unsigned few_s = response_memory_time_to_read_s(memory, team);
    assert_in_range(few_s, 1, some_s - 1);
    assert_int_equal(response_memory_time_to_read_s(memory, address), 0);
    struct response_holder *others = take(memory, of_tenant(2), 250);
    assert_int_equal(response_memory_time_to_read_s(memory, address), few_s); /* of all */
    give(memory, others, 250);
    give(memory, most, 90);
    give(memory, more, 10);
    give(memory, team, 300);
    give(memory, address, ADDRESS_BYTES);
    response_memory_destroy(memory);
}

static void a_slow_client_waits_until_three_quarters_are_free(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    struct request slow = from_address("192.0.2.1"), of_team = of_tenant(1);
    snprintf(of_team.address, sizeof(of_team.address), "192.0.2.1");
    response_memory_note_slow(memory, &slow);
    const struct request often = from_address("192.0.2.9");
    for (int i = 0; i < 2000; i++) /* takes one place of the list, not all */
        response_memory_note_slow(memory, &often);
    struct response_holder *other = take(memory, from_address("192.0.2.2"), 110);
    refuse(memory, slow, 1, "read slowly");
    struct response_holder *quick = take(memory, from_address("192.0.2.3"), ADDRESS_BYTES);
    struct response_holder *team = take(memory, of_team, 300);
    response_memory_note_slow(memory, &of_team);
    refuse(memory, of_team, 1, "read slowly");
    snprintf(of_team.address, sizeof(of_team.address), "192.0.2.4");
    struct response_holder *colleague = take(memory, of_team, 1);
    give(memory, colleague, 1);
    give(memory, other, 110);
    give(memory, quick, ADDRESS_BYTES);
    struct response_holder *again = take(memory, slow, ADDRESS_BYTES);
    give(memory, again, ADDRESS_BYTES);
    give(memory, team, 300);
    response_memory_destroy(memory);
}

static void the_networks_of_a_slow_site_are_slow(void **state)
{
    (void)state;
    struct response_memory *memory = response_memory_create(MAX_BYTES);
    const struct request slow = from_address("2001:db8:1:1::1");
    response_memory_note_slow(memory, &slow);
    struct response_holder *other = take(memory, from_address("192.0.2.2"), 110);
    struct response_holder *quick = take(memory, from_address("192.0.2.3"), ADDRESS_BYTES);
    refuse(memory, from_address("2001:db8:1:2::1"), 1, "read slowly");
    struct response_holder *neighbour = take(memory, from_address("2001:db8:2:1::1"), 1);
    give(memory, neighbour, 1);
    give(memory, quick, ADDRESS_BYTES);
    give(memory, other, 110);
    response_memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_an_eighth),
        cmocka_unit_test(an_ipv6_network_is_one_client),
        cmocka_unit_test(clients_without_credentials_have_a_half),
        cmocka_unit_test(a_tenant_has_a_half),
        cmocka_unit_test(the_first_response_may_have_any_size),
        cmocka_unit_test(shared_bytes_count_once),
        cmocka_unit_test(shared_bytes_count_once_for_all_addresses),
        cmocka_unit_test(responses_must_be_read_faster_when_little_is_free),
        cmocka_unit_test(a_slow_client_waits_until_three_quarters_are_free),
        cmocka_unit_test(the_networks_of_a_slow_site_are_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

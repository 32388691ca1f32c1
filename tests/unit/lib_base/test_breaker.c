/* A circuit breaker and the probes that decide. */
#include "tests/unit/test.h"

#include "lib/base/breaker.h"
#include "lib/base/clock.h"

#include <stdatomic.h>

struct service {
    struct breaker *breaker;
    atomic_bool replies;
    atomic_bool replies_to_last; /* of the requests of one probe */
    atomic_bool replies_to_callers;
    atomic_int probe_count;
    atomic_int opened_count;
    atomic_int closed_count;
};

static bool probe(void *context, int index)
{
    struct service *service = context;
    if (atomic_load(&service->replies_to_callers))
        breaker_note_reply(service->breaker);
    if (index < BREAKER_PROBE_REQUESTS - 1)
        return atomic_load(&service->replies);
    atomic_fetch_add(&service->probe_count, 1);
    return atomic_load(&service->replies) || atomic_load(&service->replies_to_last);
}

static void report(void *context, bool is_open)
{
    struct service *service = context;
    atomic_fetch_add(is_open ? &service->opened_count : &service->closed_count, 1);
}

static struct breaker *create(struct service *service, bool probes_at_start)
{
    struct breaker *breaker = NULL;
    struct err err;
    const struct breaker_options options = {
        .probe = probe, .report = report, .context = service, .probes_at_start = probes_at_start};
    assert_int_equal(breaker_create(&options, &breaker, &err), ERR_NONE);
    if (!probes_at_start)
        service->breaker = breaker;
    return breaker;
}

static void wait_for_count(atomic_int *count, int wanted)
{
    const int64_t deadline_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_S;
    while (atomic_load(count) < wanted && clock_monotonic_ns() < deadline_ns)
        clock_sleep_ms(1);
    assert_true(atomic_load(count) >= wanted);
}

static void opens_when_a_probe_gets_no_reply_and_closes_at_the_first_one(void **state)
{
    (void)state;
    struct service service = {.replies = false};
    struct breaker *breaker = create(&service, false);
    assert_false(breaker_is_open(breaker));
    breaker_suspect(breaker);
    wait_for_count(&service.opened_count, 1);
    assert_true(breaker_is_open(breaker));
    assert_int_equal(breaker_open_count(breaker), 1);
    wait_for_count(&service.probe_count, 3); /* without anybody who suspects */
    assert_true(breaker_is_open(breaker));
    atomic_store(&service.replies, true);
    wait_for_count(&service.closed_count, 1);
    assert_false(breaker_is_open(breaker));
    assert_int_equal(atomic_load(&service.opened_count), 1);
    breaker_destroy(breaker);
}

static void stays_closed_while_probes_are_replied_to(void **state)
{
    (void)state;
    struct service service = {.replies = true};
    struct breaker *breaker = create(&service, true);
    wait_for_count(&service.probe_count, 1);
    for (int i = 2; i <= 3; i++) {
        breaker_suspect(breaker);
        wait_for_count(&service.probe_count, i);
    }
    assert_false(breaker_is_open(breaker));
    breaker_destroy(breaker);
    assert_int_equal(atomic_load(&service.opened_count), 0);
}

/* Suspects until three more probes have begun, so that at least two of them have ended. */
static void suspect_thrice(struct service *service, struct breaker *breaker)
{
    const int first = atomic_load(&service->probe_count);
    for (int i = 1; i <= 3; i++) {
        breaker_suspect(breaker);
        wait_for_count(&service->probe_count, first + i);
    }
}

static void stays_closed_when_one_of_two_requests_is_replied_to(void **state)
{
    (void)state;
    struct service service = {.replies_to_last = true};
    struct breaker *breaker = create(&service, false);
    suspect_thrice(&service, breaker);
    breaker_destroy(breaker);
    assert_int_equal(atomic_load(&service.opened_count), 0);
}

static void a_reply_to_a_caller_proves_that_the_service_is_alive(void **state)
{
    (void)state;
    struct service service = {.replies_to_callers = true};
    struct breaker *breaker = create(&service, false);
    suspect_thrice(&service, breaker);
    assert_int_equal(atomic_load(&service.opened_count), 0);
    atomic_store(&service.replies_to_callers, false); /* replies before a probe prove nothing */
    breaker_suspect(breaker);
    wait_for_count(&service.opened_count, 1);
    breaker_destroy(breaker);
}

static void none_is_a_breaker_that_is_never_open(void **state)
{
    (void)state;
    breaker_suspect(NULL);
    breaker_note_reply(NULL);
    assert_false(breaker_is_open(NULL));
    assert_int_equal(breaker_open_count(NULL), 0);
    breaker_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_when_a_probe_gets_no_reply_and_closes_at_the_first_one),
        cmocka_unit_test(stays_closed_while_probes_are_replied_to),
        cmocka_unit_test(stays_closed_when_one_of_two_requests_is_replied_to),
        cmocka_unit_test(a_reply_to_a_caller_proves_that_the_service_is_alive),
        cmocka_unit_test(none_is_a_breaker_that_is_never_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

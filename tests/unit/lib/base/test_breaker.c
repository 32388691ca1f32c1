/* The circuit breaker and its probes. */
#include "tests/unit/test.h"

#include "lib/base/breaker.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <stdatomic.h>

struct service {
    struct breaker *breaker;
    atomic_bool replies;            /* to all requests of a probe */
    atomic_bool replies_to_last;    /* only to the last request of a probe */
    atomic_bool replies_to_callers; /* a caller gets a reply during each probe */
    atomic_int latency_ms;          /* of replies; probes wait at least as long */
    atomic_int probe_count;
    atomic_int opened_count;
    atomic_int closed_count;
};

static bool probe(void *context, int index, int64_t deadline_ms)
{
    struct service *service = context;
    const int latency_ms = atomic_load(&service->latency_ms);
    clock_sleep_ms(latency_ms < deadline_ms ? latency_ms : deadline_ms);
    if (atomic_load(&service->replies_to_callers))
        breaker_note_reply(service->breaker);
    if (index == BREAKER_PROBE_REQUESTS - 1)
        atomic_fetch_add(&service->probe_count, 1);
    if (latency_ms > deadline_ms)
        return false;
    if (index == BREAKER_LONG_REQUEST)
        return atomic_load(&service->replies);
    if (index < BREAKER_PROBE_REQUESTS - 1)
        return atomic_load(&service->replies);
    return atomic_load(&service->replies) || atomic_load(&service->replies_to_last);
}

static void report(void *context, bool is_open)
{
    struct service *service = context;
    atomic_fetch_add(is_open ? &service->opened_count : &service->closed_count, 1);
}

static struct breaker *create_with(struct service *service, bool probes_at_start, int64_t probe_ms,
                                   int64_t max_probe_ms)
{
    struct breaker *breaker = NULL;
    struct err err;
    const struct breaker_options options = {.probe = probe,
                                            .probe_ms = probe_ms,
                                            .max_probe_ms = max_probe_ms,
                                            .report = report,
                                            .context = service,
                                            .probes_at_start = probes_at_start};
    assert_int_equal(breaker_create(&options, &breaker, &err), ERR_NONE);
    if (!probes_at_start)
        service->breaker = breaker;
    return breaker;
}

static struct breaker *create(struct service *service, bool probes_at_start)
{
    return create_with(service, probes_at_start, 1000, 1000);
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
    wait_for_count(&service.probe_count, 3); /* without a suspecting caller */
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

/* Suspects until three more probes have begun, so at least two of them have ended. */
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
    atomic_store(&service.replies_to_callers, false); /* replies before a probe do not count */
    breaker_suspect(breaker);
    wait_for_count(&service.opened_count, 1);
    breaker_destroy(breaker);
}

static void closes_for_a_slow_service_and_waits_for_it_from_then_on(void **state)
{
    (void)state;
    struct service service = {.replies = true, .latency_ms = 50};
    struct breaker *breaker = create_with(&service, false, 10, 1000);
    assert_int_equal(breaker_deadline_ms(breaker), 10);
    breaker_suspect(breaker);
    wait_for_count(&service.opened_count, 1);
    wait_for_count(&service.closed_count, 1);
    assert_true(breaker_deadline_ms(breaker) >= 150);
    suspect_thrice(&service, breaker);
    assert_int_equal(atomic_load(&service.opened_count), 1);
    atomic_store(&service.latency_ms, 20000); /* the service hangs now */
    breaker_suspect(breaker);
    wait_for_count(&service.opened_count, 2);
    atomic_store(&service.latency_ms, 0);
    wait_for_count(&service.closed_count, 2);
    breaker_destroy(breaker);
}

static void forgets_the_latency_after_a_bounded_number_of_quick_replies(void **state)
{
    (void)state;
    struct service service = {.replies = true, .latency_ms = 50};
    struct breaker *breaker = create_with(&service, false, 100, 10000);
    suspect_thrice(&service, breaker);
    const int64_t slow_ms = breaker_deadline_ms(breaker);
    assert_true(slow_ms >= 150);
    breaker_note_duration(breaker,
                          20 * CLOCK_NS_PER_S); /* a request that is slow for reasons of its own */
    assert_int_equal(breaker_deadline_ms(breaker), slow_ms);
    while (breaker_deadline_ms(breaker) > 150 * 2) /* the system is busy */
        breaker_note_duration(breaker, CLOCK_NS_PER_MS);
    for (int i = 0; i < 12; i++)
        breaker_note_duration(breaker, CLOCK_NS_PER_MS);
    assert_int_equal(breaker_deadline_ms(breaker), 100);
    breaker_destroy(breaker);
}

static void a_failed_probe_does_not_count_if_a_caller_got_a_reply(void **state)
{
    (void)state;
    struct service service = {.replies_to_callers = true, .latency_ms = 20000};
    struct breaker *breaker = create_with(&service, false, 10, 40);
    suspect_thrice(&service, breaker);
    assert_true(breaker_deadline_ms(breaker) >= 30);
    breaker_destroy(breaker);
    assert_int_equal(atomic_load(&service.opened_count), 0);
}

static void a_null_breaker_is_never_open(void **state)
{
    (void)state;
    breaker_suspect(NULL);
    breaker_note_reply(NULL);
    breaker_note_duration(NULL, 1);
    assert_int_equal(breaker_deadline_ms(NULL), 0);
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
        cmocka_unit_test(closes_for_a_slow_service_and_waits_for_it_from_then_on),
        cmocka_unit_test(forgets_the_latency_after_a_bounded_number_of_quick_replies),
        cmocka_unit_test(a_failed_probe_does_not_count_if_a_caller_got_a_reply),
        cmocka_unit_test(a_null_breaker_is_never_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

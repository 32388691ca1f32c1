#include "tests/unit/test.h"

#include "api/http/rate_limiter.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* The clock of these tests, set by each test. */
static int64_t test_now_ns;

static int64_t now_ns(void)
{
    return test_now_ns;
}

static void pass_seconds(double seconds)
{
    test_now_ns += (int64_t)(seconds * (double)CLOCK_NS_PER_S);
}

static int set_up(void **state)
{
    test_now_ns = 1000 * CLOCK_NS_PER_S;
    *state = rate_limiter_create(1024, now_ns);
    return 0;
}

static int tear_down(void **state)
{
    rate_limiter_destroy(*state);
    return 0;
}

static void a_rate_allows_a_burst_and_then_its_rate(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct err err;
    struct span key = SPAN_LITERAL("7");
    for (int i = 0; i < 3; i++)
        assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, key, 6, 3, &err),
                         ERR_NONE);
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, key, 6, 3, &err),
                     ERR_RATE_LIMITED);
    assert_int_equal(err.retry_after_s, 10);
    pass_seconds(9.9);
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, key, 6, 3, &err),
                     ERR_RATE_LIMITED);
    pass_seconds(0.2);
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, key, 6, 3, &err),
                     ERR_NONE);
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, key, 6, 3, &err),
                     ERR_RATE_LIMITED);
}

static enum err_code take_bytes(struct rate_limiter *rate_limiter, double bytes, struct err *err)
{
    return rate_limiter_take_amount(rate_limiter, LIMIT_UPLOAD_BYTES_ADDRESS,
                                    SPAN_LITERAL("192.0.2.1"), bytes, 100, 1000, err);
}

static void an_amount_is_taken_as_a_whole(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct err err;
    assert_int_equal(take_bytes(rate_limiter, 700, &err), ERR_NONE);
    assert_int_equal(take_bytes(rate_limiter, 400, &err), ERR_RATE_LIMITED);
    assert_int_equal(err.retry_after_s, 60);
    assert_int_equal(take_bytes(rate_limiter, 300, &err), ERR_NONE);
    pass_seconds(599);
    assert_int_equal(take_bytes(rate_limiter, 5000, &err), ERR_RATE_LIMITED);
    pass_seconds(2);
    assert_int_equal(take_bytes(rate_limiter, 5000, &err), ERR_NONE); /* all of the burst */
    assert_int_equal(take_bytes(rate_limiter, 5, &err), ERR_RATE_LIMITED);
}

static void a_charged_amount_delays_what_is_taken_later(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct err err;
    assert_int_equal(take_bytes(rate_limiter, 900, &err), ERR_NONE);
    rate_limiter_charge_amount(rate_limiter, LIMIT_UPLOAD_BYTES_ADDRESS, SPAN_LITERAL("192.0.2.1"),
                               300, 100, 1000);
    assert_int_equal(take_bytes(rate_limiter, 100, &err), ERR_RATE_LIMITED);
    assert_int_equal(err.retry_after_s, 180);
    pass_seconds(181);
    assert_int_equal(take_bytes(rate_limiter, 100, &err), ERR_NONE);
    assert_int_equal(take_bytes(rate_limiter, 100, &err), ERR_RATE_LIMITED);
    /* At most four times the burst. */
    rate_limiter_charge_amount(rate_limiter, LIMIT_UPLOAD_BYTES_ADDRESS, SPAN_LITERAL("192.0.2.1"),
                               3000, 100, 1000);
    assert_int_equal(take_bytes(rate_limiter, 1000, &err), ERR_RATE_LIMITED);
    assert_in_range(err.retry_after_s, 2300, 2400);
    rate_limiter_charge_amount(rate_limiter, LIMIT_UPLOAD_BYTES_ADDRESS, SPAN_LITERAL("192.0.2.1"),
                               1e12, 100, 1000);
    assert_int_equal(take_bytes(rate_limiter, 1000, &err), ERR_RATE_LIMITED);
    assert_in_range(err.retry_after_s, 4700, 4800);
}

static void an_event_that_is_given_back_can_be_taken_again(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    const struct span key = SPAN_LITERAL("share");
    struct err err;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_SHARE_PASSWORD, key, 1, 3, &err),
                         ERR_NONE);
        rate_limiter_give_back(rate_limiter, LIMIT_SHARE_PASSWORD, key);
    }
    assert_int_equal(
        rate_limiter_take_amount(rate_limiter, LIMIT_SHARE_PASSWORD, key, 3, 1, 3, &err), ERR_NONE);
    rate_limiter_give_back_amount(rate_limiter, LIMIT_SHARE_PASSWORD, key, 3);
    rate_limiter_give_back(rate_limiter, LIMIT_SHARE_PASSWORD, key); /* no more than the burst */
    for (int i = 0; i < 3; i++)
        assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_SHARE_PASSWORD, key, 1, 3, &err),
                         ERR_NONE);
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_SHARE_PASSWORD, key, 1, 3, &err),
                     ERR_RATE_LIMITED);
}

static void keys_and_kinds_are_limited_separately(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct err err;
    struct span key = SPAN_LITERAL("10.0.0.1");
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, key, 1, 1, &err),
                     ERR_NONE);
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, key, 1, 1, &err),
                     ERR_RATE_LIMITED);
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_ADDRESS, key, 1, 1, &err),
                     ERR_NONE);
    assert_int_equal(
        rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, SPAN_LITERAL("10.0.0.2"), 1, 1, &err),
        ERR_NONE);
}

static void a_rate_of_zero_allows_nothing(void **state)
{
    struct err err;
    assert_int_equal(rate_limiter_take(*state, LIMIT_UPLOAD_TENANT, SPAN_LITERAL("1"), 0, 0, &err),
                     ERR_RATE_LIMITED);
    assert_true(err.retry_after_s > 0);
}

static int wait_after_failures(struct rate_limiter *rate_limiter, int count)
{
    struct err err = {0};
    struct span key = SPAN_LITERAL("somebody@example.com");
    rate_limiter_reset(rate_limiter, LIMIT_SIGN_IN_PAIR, key);
    for (int i = 0; i < count; i++)
        rate_limiter_fail(rate_limiter, LIMIT_SIGN_IN_PAIR, key);
    return rate_limiter_check(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err) ? err.retry_after_s : 0;
}

static void failures_double_the_wait_up_to_a_limit(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    assert_int_equal(wait_after_failures(rate_limiter, 5), 0);
    assert_int_equal(wait_after_failures(rate_limiter, 6), 1);
    assert_int_equal(wait_after_failures(rate_limiter, 7), 2);
    assert_int_equal(wait_after_failures(rate_limiter, 10), 16);
    assert_int_equal(wait_after_failures(rate_limiter, 100), 3600);
}

static void a_pause_ends_and_failures_are_forgotten(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct err err;
    struct span key = SPAN_LITERAL("a@b");
    for (int i = 0; i < 8; i++)
        rate_limiter_fail(rate_limiter, LIMIT_SIGN_IN_PAIR, key);
    assert_int_equal(rate_limiter_check(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err),
                     ERR_RATE_LIMITED);
    pass_seconds(4.1);
    assert_int_equal(rate_limiter_check(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err), ERR_NONE);
    rate_limiter_fail(rate_limiter, LIMIT_SIGN_IN_PAIR, key);
    assert_int_equal(rate_limiter_check(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err),
                     ERR_RATE_LIMITED);
    assert_int_equal(err.retry_after_s, 8);
    pass_seconds(86401);
    rate_limiter_fail(rate_limiter, LIMIT_SIGN_IN_PAIR, key);
    assert_int_equal(rate_limiter_check(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err), ERR_NONE);
}

static void attempts_count_before_their_outcome_is_known(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct err err;
    struct span key = SPAN_LITERAL("a@b");
    for (int i = 0; i < 6; i++)
        assert_int_equal(rate_limiter_attempt(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err),
                         ERR_NONE);
    assert_int_equal(rate_limiter_attempt(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err),
                     ERR_RATE_LIMITED);
    rate_limiter_forgive(rate_limiter, LIMIT_SIGN_IN_PAIR, key);
    assert_int_equal(rate_limiter_attempt(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err), ERR_NONE);
    rate_limiter_reset(rate_limiter, LIMIT_SIGN_IN_PAIR, key);
    for (int i = 0; i < 6; i++)
        assert_int_equal(rate_limiter_attempt(rate_limiter, LIMIT_SIGN_IN_PAIR, key, &err),
                         ERR_NONE);
}

static bool shares_limit(struct rate_limiter *rate_limiter, struct span first, struct span second)
{
    struct err err;
    assert_int_equal(rate_limiter_take(rate_limiter, LIMIT_UPLOAD_ADDRESS, first, 1, 1, &err),
                     ERR_NONE);
    return rate_limiter_take(rate_limiter, LIMIT_UPLOAD_ADDRESS, second, 1, 1, &err) ==
           ERR_RATE_LIMITED;
}

static void ipv6_is_limited_by_network_prefix(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    assert_true(shares_limit(rate_limiter, SPAN_LITERAL("2001:db8:1:2::1"),
                             SPAN_LITERAL("2001:db8:1:2:f::9")));
    assert_false(shares_limit(rate_limiter, SPAN_LITERAL("2001:db8:1:3::1"),
                              SPAN_LITERAL("2001:db8:1:4::1")));
    assert_false(shares_limit(rate_limiter, SPAN_LITERAL("192.0.2.1"), SPAN_LITERAL("192.0.2.2")));
}

static void a_network_prefix_has_a_name(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"2001:db8:1:2:f::9", "2001:db8:1:2::/64"}, {"::1", "::/64"}, {"192.0.2.1", "192.0.2.1"},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.1"},   {"", ""},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[RATE_LIMITER_SUBSCRIBER_BYTES];
        rate_limiter_subscriber(span_text(names[i][0]), text);
        assert_string_equal(text, names[i][1]);
    }
}

static void a_full_table_forgets_the_oldest_and_stays_usable(void **state)
{
    (void)state;
    struct rate_limiter *rate_limiter = rate_limiter_create(16, now_ns);
    struct err err;
    char key[24];
    for (int i = 0; i < 10000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        pass_seconds(0.001);
        assert_int_equal(
            rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, span_text(key), 1, 1, &err),
            ERR_NONE);
    }
    assert_int_equal(
        rate_limiter_take(rate_limiter, LIMIT_UPLOAD_TENANT, span_text(key), 1, 1, &err),
        ERR_RATE_LIMITED);
    rate_limiter_destroy(rate_limiter);
}

static void take_byte(struct rate_limiter *rate_limiter, enum limit_kind kind, const char *address,
                      enum err_code wanted)
{
    struct err err;
    assert_int_equal(rate_limiter_take(rate_limiter, kind, span_text(address), 0.001, 1, &err),
                     wanted);
}

static void addresses_of_a_site_do_not_make_it_forgotten(void **state)
{
    (void)state;
    struct rate_limiter *rate_limiter = rate_limiter_create(64, now_ns);
    take_byte(rate_limiter, LIMIT_UPLOAD_BYTES_SITE, "2001:db8:1:1::1", ERR_NONE);
    for (int i = 0; i < 10000; i++) {
        char address[40];
        snprintf(address, sizeof(address), "2001:db8:1:%x::1", i);
        take_byte(rate_limiter, LIMIT_UPLOAD_BYTES_ADDRESS, address, ERR_NONE);
        take_byte(rate_limiter, LIMIT_UPLOAD_BYTES_SITE, address, ERR_RATE_LIMITED);
    }
    take_byte(rate_limiter, LIMIT_UPLOAD_BYTES_SITE, "2001:db8:2:1::1", ERR_NONE);
    rate_limiter_destroy(rate_limiter);
}

struct visit {
    struct rate_limiter *rate_limiter;
    struct span source;
    atomic_int *order; /* of entering, over all visits */
    atomic_int number; /* 0: not decided yet */
    pthread_t thread;
};

enum { REFUSED = -1 };

static void *enter_and_leave(void *context)
{
    struct visit *visit = context;
    struct err err;
    if (rate_limiter_enter(visit->rate_limiter, SLOT_PASSWORD, visit->source, &err)) {
        visit->number = REFUSED;
        return NULL;
    }
    visit->number = atomic_fetch_add(visit->order, 1) + 1;
    rate_limiter_leave(visit->rate_limiter, SLOT_PASSWORD, visit->source);
    return NULL;
}

static void start_visit(struct visit *visit, struct rate_limiter *rate_limiter, const char *source,
                        atomic_int *order)
{
    *visit =
        (struct visit){.rate_limiter = rate_limiter, .source = span_text(source), .order = order};
    assert_int_equal(pthread_create(&visit->thread, NULL, enter_and_leave, visit), 0);
}

/* Returns when the visit waits for a slot or has ended. */
static void visit_from(struct visit *visit, struct rate_limiter *rate_limiter, const char *source,
                       atomic_int *order)
{
    const int before = rate_limiter_waiting_count(rate_limiter, SLOT_PASSWORD);
    start_visit(visit, rate_limiter, source, order);
    while (!visit->number && rate_limiter_waiting_count(rate_limiter, SLOT_PASSWORD) == before)
        clock_sleep_ms(1);
}

static enum err_code enter(struct rate_limiter *rate_limiter, const char *source)
{
    struct err err;
    const enum err_code code =
        rate_limiter_enter(rate_limiter, SLOT_PASSWORD, span_text(source), &err);
    assert_true(!code || err.retry_after_s > 0);
    return code;
}

static void leave(struct rate_limiter *rate_limiter, const char *source)
{
    rate_limiter_leave(rate_limiter, SLOT_PASSWORD, span_text(source));
}

static void fail_twice(struct rate_limiter *rate_limiter, const char *address)
{
    for (int i = 0; i < 2; i++)
        rate_limiter_fail(rate_limiter, LIMIT_SIGN_IN_SITE, span_text(address));
}

/* The requests that wait for a slot of SLOT_PASSWORD. */
struct waiting {
    struct visit visits[RATE_LIMITER_WAITERS];
    char sources[RATE_LIMITER_WAITERS][16];
    atomic_int order;
};

/* 192.0.2.201 and 192.0.2.202 get the slots, other addresses fill the list. */
static void fill_slots(struct rate_limiter *rate_limiter, struct waiting *waiting, bool has_failed)
{
    waiting->order = 0;
    assert_int_equal(enter(rate_limiter, "192.0.2.201"), ERR_NONE);
    assert_int_equal(enter(rate_limiter, "192.0.2.202"), ERR_NONE);
    for (int i = 0; i < RATE_LIMITER_WAITERS; i++) {
        snprintf(waiting->sources[i], sizeof(waiting->sources[i]), "192.0.2.%d", i + 1);
        if (has_failed)
            fail_twice(rate_limiter, waiting->sources[i]);
        visit_from(&waiting->visits[i], rate_limiter, waiting->sources[i], &waiting->order);
    }
}

static void slots_limit_concurrent_requests(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct waiting waiting;
    fill_slots(rate_limiter, &waiting, false);
    assert_int_equal(enter(rate_limiter, "192.0.2.100"), ERR_BUSY);
    leave(rate_limiter, "192.0.2.201");
    leave(rate_limiter, "192.0.2.202");
    for (int i = 0; i < RATE_LIMITER_WAITERS; i++) {
        pthread_join(waiting.visits[i].thread, NULL);
        assert_true(waiting.visits[i].number > 0);
    }
    assert_int_equal(enter(rate_limiter, "192.0.2.1"), ERR_NONE);
    leave(rate_limiter, "192.0.2.1");
}

/* However many addresses guess passwords, a request from another address is the next. */
static void sites_that_failed_wait_behind_others(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct waiting waiting;
    struct visit other;
    fill_slots(rate_limiter, &waiting, true);
    fail_twice(rate_limiter, "2001:db8::1");
    assert_int_equal(enter(rate_limiter, "2001:db8:0:7::9"), ERR_BUSY); /* of the same site */
    start_visit(&other, rate_limiter, "192.0.2.100", &waiting.order);
    pthread_join(waiting.visits[RATE_LIMITER_WAITERS - 1].thread, NULL); /* it lost its place */
    assert_int_equal(waiting.visits[RATE_LIMITER_WAITERS - 1].number, REFUSED);
    leave(rate_limiter, "192.0.2.201");
    pthread_join(other.thread, NULL);
    assert_int_equal(other.number, 1);
    leave(rate_limiter, "192.0.2.202");
    for (int i = 0; i < RATE_LIMITER_WAITERS - 1; i++)
        pthread_join(waiting.visits[i].thread, NULL);
}

static void a_source_has_one_slot_and_one_waiting_request(void **state)
{
    struct rate_limiter *rate_limiter = *state;
    struct visit own, other;
    atomic_int order = 0;
    assert_int_equal(enter(rate_limiter, "2001:db8::1"), ERR_NONE);
    visit_from(&own, rate_limiter, "2001:db8::2", &order); /* waits, though a slot is free */
    assert_int_equal(order, 0);
    assert_int_equal(enter(rate_limiter, "2001:db8::3"), ERR_BUSY);
    visit_from(&other, rate_limiter, "192.0.2.1", &order); /* gets the free slot at once */
    pthread_join(other.thread, NULL);
    assert_int_equal(other.number, 1);
    leave(rate_limiter, "2001:db8::1");
    pthread_join(own.thread, NULL);
    assert_int_equal(own.number, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rate_allows_a_burst_and_then_its_rate),
        TEST(an_amount_is_taken_as_a_whole),
        TEST(a_charged_amount_delays_what_is_taken_later),
        TEST(an_event_that_is_given_back_can_be_taken_again),
        TEST(keys_and_kinds_are_limited_separately),
        TEST(a_rate_of_zero_allows_nothing),
        TEST(failures_double_the_wait_up_to_a_limit),
        TEST(a_pause_ends_and_failures_are_forgotten),
        TEST(attempts_count_before_their_outcome_is_known),
        TEST(ipv6_is_limited_by_network_prefix),
        TEST(a_network_prefix_has_a_name),
        TEST(a_full_table_forgets_the_oldest_and_stays_usable),
        TEST(addresses_of_a_site_do_not_make_it_forgotten),
        TEST(slots_limit_concurrent_requests),
        TEST(sites_that_failed_wait_behind_others),
        TEST(a_source_has_one_slot_and_one_waiting_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

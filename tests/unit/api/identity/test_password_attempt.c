#include "tests/unit/test.h"

#include "api/http/rate_limiter.h"
#include "api/identity/password.h"
#include "api/identity/password_attempt.h"
#include "api/identity/password_cache.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <stdio.h>
#include <string.h>

/* The clock of these tests, set by each test. */
static int64_t test_now_ns;
static struct rate_limiter *rate_limiter;
static struct password_cache *cache;

/* Longer than any password, so it is refused without computing a hash. */
static char wrong[PASSWORD_MAX_BYTES + 2];

static int64_t now_ns(void)
{
    return test_now_ns;
}

static int start(void **state)
{
    (void)state;
    memset(wrong, 'x', sizeof(wrong) - 1);
    test_now_ns = 1000 * CLOCK_NS_PER_S;
    rate_limiter = rate_limiter_create(1 << 16, now_ns);
    cache = password_cache_create(now_ns);
    rate_limiter_set_passwords(rate_limiter, 1000000); /* one test lowers it */
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rate_limiter_destroy(rate_limiter);
    password_cache_destroy(cache);
    return 0;
}

static enum err_code guess(enum password_subject subject, const char *key, const char *address,
                           const char *device)
{
    const struct password_attempt attempt = {.subject = subject,
                                             .key = span_text(key),
                                             .address = span_text(address),
                                             .device = span_text(device)};
    struct err err;
    bool matches = true;
    enum err_code code = password_attempt_verify(cache, rate_limiter, &attempt, span_text(wrong),
                                                 "", &matches, &err);
    assert_true(code || !matches);
    return code;
}

static void failures_of_many_addresses_do_not_delay_others(void **state)
{
    (void)state;
    char address[32];
    for (int subject = PASSWORD_OF_ACCOUNT; subject <= PASSWORD_OF_SHARE; subject++) {
        for (int i = 0; i < 100; i++) {
            snprintf(address, sizeof(address), "192.0.2.%d", i);
            for (int k = 0; k < 5; k++)
                assert_int_equal(guess((enum password_subject)subject, "a@b", address, ""),
                                 ERR_NONE);
        }
        assert_int_equal(guess((enum password_subject)subject, "a@b", "198.51.100.1", ""),
                         ERR_NONE);
    }
}

/* Guesses once per second; returns how many guesses were not refused. */
static int count_guesses(const char *address, int64_t seconds)
{
    int count = 0;
    for (int64_t i = 0; i < seconds; i++) {
        count += guess(PASSWORD_OF_ACCOUNT, "a@b", address, "") == ERR_NONE;
        test_now_ns += CLOCK_NS_PER_S;
    }
    return count;
}

static void an_address_has_few_guesses_per_day(void **state)
{
    (void)state;
    int first_day = count_guesses("192.0.2.1", 86400);
    assert_in_range(first_day, 20, 41);
    assert_in_range(count_guesses("192.0.2.1", 86400), 20, 24);
}

static void all_addresses_together_have_a_limit(void **state)
{
    (void)state;
    char address[32];
    int count = 0;
    for (int minute = 0; minute < 60; minute++) {
        for (int i = 0; i < 100; i++) {
            snprintf(address, sizeof(address), "10.0.%d.%d", minute, i);
            count += guess(PASSWORD_OF_ACCOUNT, "a@b", address, "") == ERR_NONE;
        }
        test_now_ns += 60 * CLOCK_NS_PER_S;
    }
    assert_in_range(count, 1150, 1200);
    assert_int_equal(guess(PASSWORD_OF_ACCOUNT, "c@d", "10.0.0.1", ""), ERR_NONE);
}

static void a_device_cookie_has_its_own_limit(void **state)
{
    (void)state;
    char address[32];
    for (int i = 0; i < 700; i++) {
        snprintf(address, sizeof(address), "10.0.%d.%d", i / 100, i % 100);
        (void)!guess(PASSWORD_OF_ACCOUNT, "a@b", address, "");
    }
    assert_int_equal(guess(PASSWORD_OF_ACCOUNT, "a@b", "198.51.100.1", ""), ERR_RATE_LIMITED);
    for (int i = 0; i < 11; i++)
        assert_int_equal(guess(PASSWORD_OF_ACCOUNT, "a@b", "198.51.100.1", "device"), ERR_NONE);
    assert_int_equal(guess(PASSWORD_OF_ACCOUNT, "a@b", "198.51.100.1", "device"), ERR_RATE_LIMITED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

static uint32_t count_allowed(const char *key, const char *address, const char *device)
{
    uint32_t count = 0;
    for (int i = 0; i < 200; i++) {
        char other[32];
        snprintf(other, sizeof(other), "%s%d", key, device[0] ? 0 : i);
        count += guess(PASSWORD_OF_SHARE, other, address, device) == ERR_NONE;
        rate_limiter_reset(rate_limiter, LIMIT_SHARE_PASSWORD_ADDRESS, span_text(address));
        rate_limiter_reset(rate_limiter, LIMIT_SIGN_IN_DEVICE, span_text(device));
    }
    return count;
}

/* Right passwords reset the failures, as the test does, but each costs a hash. */
static void an_address_has_a_number_of_hashes_a_minute(void **state)
{
    (void)state;
    rate_limiter_set_passwords(rate_limiter, 30);
    assert_int_equal(count_allowed("share", "192.0.2.1", ""), 60);
    assert_int_equal(count_allowed("share", "2001:db8::1", ""), 60);
    assert_int_equal(count_allowed("share", "2001:db8::2", ""), 0);
    assert_int_equal(count_allowed("share", "192.0.2.2", ""), 60);
    test_now_ns += 60 * CLOCK_NS_PER_S;
    assert_int_equal(count_allowed("share", "192.0.2.1", ""), 30);
}

static void devices_of_an_account_have_a_number_of_hashes_a_minute(void **state)
{
    (void)state;
    rate_limiter_set_passwords(rate_limiter, 30);
    assert_int_equal(count_allowed("a@example.org", "192.0.2.1", "device 1"), 60);
    assert_int_equal(count_allowed("a@example.org", "192.0.2.2", "device 2"), 0);
    assert_int_equal(count_allowed("b@example.org", "192.0.2.1", "device 3"), 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(failures_of_many_addresses_do_not_delay_others),
        TEST(an_address_has_few_guesses_per_day),
        TEST(all_addresses_together_have_a_limit),
        TEST(a_device_cookie_has_its_own_limit),
        TEST(an_address_has_a_number_of_hashes_a_minute),
        TEST(devices_of_an_account_have_a_number_of_hashes_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

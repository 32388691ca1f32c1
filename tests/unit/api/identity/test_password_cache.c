#include "tests/unit/test.h"

#include "api/identity/password.h"
#include "api/identity/password_cache.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"

#include <stdio.h>
#include <string.h>

/* The clock of these tests, set by each test. */
static int64_t test_now_ns;

static int64_t now_ns(void)
{
    return test_now_ns;
}

static void only_the_pair_that_matched_is_found(void **state)
{
    (void)state;
    struct password_cache *cache = password_cache_create(now_ns);
    assert_false(password_cache_has(cache, "$scrypt$a", span_text("right")));
    password_cache_add(cache, "$scrypt$a", span_text("right"));
    assert_true(password_cache_has(cache, "$scrypt$a", span_text("right")));
    assert_false(password_cache_has(cache, "$scrypt$a", span_text("wrong")));
    assert_false(password_cache_has(cache, "$scrypt$b", span_text("right")));
    /* The boundary between the two texts counts. */
    assert_false(password_cache_has(cache, "$scrypt$", span_text("aright")));
    assert_false(password_cache_has(cache, "$scrypt$a", span_of((const uint8_t *)"", 0)));
    password_cache_destroy(cache);
}

static void an_entry_expires(void **state)
{
    (void)state;
    struct password_cache *cache = password_cache_create(now_ns);
    test_now_ns = 1000;
    password_cache_add(cache, "$scrypt$a", span_text("right"));
    test_now_ns += PASSWORD_CACHE_S * CLOCK_NS_PER_S - 1;
    assert_true(password_cache_has(cache, "$scrypt$a", span_text("right")));
    test_now_ns += 1;
    assert_false(password_cache_has(cache, "$scrypt$a", span_text("right")));
    password_cache_add(cache, "$scrypt$a", span_text("right"));
    assert_true(password_cache_has(cache, "$scrypt$a", span_text("right")));
    password_cache_destroy(cache);
}

static void many_passwords_replace_the_oldest(void **state)
{
    (void)state;
    struct password_cache *cache = password_cache_create(now_ns);
    char text[32];
    test_now_ns = 1000;
    password_cache_add(cache, "$scrypt$a", span_text("first"));
    for (int i = 0; i < 100000; i++) {
        test_now_ns++;
        snprintf(text, sizeof(text), "%d", i);
        password_cache_add(cache, "$scrypt$a", span_text(text));
        assert_true(password_cache_has(cache, "$scrypt$a", span_text(text)));
    }
    assert_false(password_cache_has(cache, "$scrypt$a", span_text("first")));
    password_cache_destroy(cache);
}

static void texts_that_are_too_long_are_not_kept(void **state)
{
    (void)state;
    struct password_cache *cache = password_cache_create(now_ns);
    char password[PASSWORD_MAX_BYTES + 2] = "", stored[DIGEST_PASSWORD_BYTES + 1] = "";
    memset(password, 'x', PASSWORD_MAX_BYTES);
    memset(stored, 'y', DIGEST_PASSWORD_BYTES - 1);
    password_cache_add(cache, stored, span_text(password));
    assert_true(password_cache_has(cache, stored, span_text(password)));
    password[PASSWORD_MAX_BYTES] = 'x';
    password_cache_add(cache, stored, span_text(password));
    assert_false(password_cache_has(cache, stored, span_text(password)));
    stored[DIGEST_PASSWORD_BYTES - 1] = 'y';
    password_cache_add(cache, stored, span_text("right"));
    assert_false(password_cache_has(cache, stored, span_text("right")));
    password_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_pair_that_matched_is_found),
        cmocka_unit_test(an_entry_expires),
        cmocka_unit_test(many_passwords_replace_the_oldest),
        cmocka_unit_test(texts_that_are_too_long_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

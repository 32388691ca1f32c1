#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/flight_cache.h"
#include "lib/base/mem.h"
#include "lib/base/wait_limit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Keys and entries count too, but take much less. */
enum { UNIT = 1 << 20 };

static size_t units(struct flight_cache *cache)
{
    return flight_cache_bytes(cache) / UNIT;
}

static atomic_int made_count, destroyed_count;

static void destroy_value(void *value)
{
    destroyed_count++;
    mem_free(value);
}

static enum err_code make_100_bytes(void *context, void **ret_value, size_t *ret_bytes,
                                    struct err *err)
{
    (void)err;
    made_count++;
    *ret_value = mem_strdup(context);
    *ret_bytes = 100 * (size_t)UNIT;
    return ERR_NONE;
}

static enum err_code make_slowly(void *context, void **ret_value, size_t *ret_bytes,
                                 struct err *err)
{
    clock_sleep_ms(100);
    return make_100_bytes(context, ret_value, ret_bytes, err);
}

static enum err_code fail_to_make(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err)
{
    (void)context, (void)ret_value, (void)ret_bytes;
    made_count++;
    clock_sleep_ms(50);
    return err_set(err, ERR_CORRUPT, "no luck");
}

static int start(void **state)
{
    made_count = destroyed_count = 0;
    *state = flight_cache_create(250 * (size_t)UNIT, destroy_value);
    return 0;
}

static int stop(void **state)
{
    flight_cache_destroy(*state);
    return 0;
}

static void touch(struct flight_cache *cache, const char *key)
{
    struct err err = {0};
    struct flight_entry *entry;
    char value[16];
    snprintf(value, sizeof(value), "%s", key);
    assert_int_equal(flight_cache_ref(cache, key, make_100_bytes, value, &entry, &err), ERR_NONE);
    assert_string_equal(flight_cache_get(entry), key);
    flight_cache_unref(entry);
}

static void computes_a_value_once(void **state)
{
    touch(*state, "a");
    touch(*state, "a");
    assert_int_equal(made_count, 1);
    assert_int_equal(units(*state), 100);
    assert_int_equal(flight_cache_made_count(*state), 1);
}

static void give(struct flight_cache *cache, const char *key, size_t count)
{
    flight_cache_give(cache, key, mem_strdup(key), count * UNIT);
}

static void accepts_values_computed_elsewhere(void **state)
{
    give(*state, "a", 100);
    touch(*state, "a");
    assert_int_equal(made_count, 0);
    give(*state, "a", 100); /* "a" exists already */
    assert_int_equal(destroyed_count, 1);
    give(*state, "b", 251); /* too large to keep */
    assert_int_equal(destroyed_count, 2);
    give(*state, "b", 100);
    give(*state, "c", 100); /* 300 bytes: a is evicted */
    assert_int_equal(destroyed_count, 3);
    assert_int_equal(units(*state), 200);
    touch(*state, "b");
    touch(*state, "c");
    assert_int_equal(made_count, 0);
}

static void evicts_the_least_recently_used(void **state)
{
    touch(*state, "a");
    touch(*state, "b");
    touch(*state, "a");
    touch(*state, "c"); /* 300 bytes: b is evicted */
    assert_int_equal(destroyed_count, 1);
    assert_int_equal(units(*state), 200);
    touch(*state, "a");
    assert_int_equal(made_count, 3);
    touch(*state, "b");
    assert_int_equal(made_count, 4);
}

static void values_in_use_stay_available_beyond_the_limit(void **state)
{
    struct err err = {0};
    struct flight_entry *entries[3];
    char values[3][2] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            flight_cache_ref(*state, values[i], make_100_bytes, values[i], &entries[i], &err), 0);
    assert_int_equal(units(*state), 300);
    touch(*state, "a");
    assert_int_equal(made_count, 3);
    for (size_t i = 0; i < 3; i++)
        flight_cache_unref(entries[i]);
    assert_int_equal(units(*state), 200);
    assert_int_equal(destroyed_count, 1);
}

static void recently_used_values_stay_and_the_newest_is_evicted(void **state)
{
    flight_cache_set_hold(*state, INT64_C(3600) * 1000000000);
    touch(*state, "a");
    touch(*state, "b");
    touch(*state, "c");
    assert_int_equal(units(*state), 200);
    touch(*state, "a");
    touch(*state, "b");
    assert_int_equal(made_count, 3);
    touch(*state, "c");
    assert_int_equal(made_count, 4);
    flight_cache_set_hold(*state, 1); /* a timeout of one nanosecond */
    touch(*state, "c");
    assert_int_equal(made_count, 5);
    touch(*state, "c");
    assert_int_equal(made_count, 5);
}

static void a_changed_limit_applies_from_the_next_value_on(void **state)
{
    touch(*state, "a");
    touch(*state, "b");
    flight_cache_set_max_bytes(*state, (300 + 1) * (size_t)UNIT);
    touch(*state, "c");
    assert_int_equal(units(*state), 300);
    flight_cache_set_max_bytes(*state, (100 + 1) * (size_t)UNIT);
    touch(*state, "d");
    assert_int_equal(units(*state), 100);
    assert_int_equal(destroyed_count, 3);
}

static void an_evicted_value_stays_valid_while_in_use(void **state)
{
    struct err err = {0};
    struct flight_entry *entry;
    char value[] = "held";
    assert_int_equal(flight_cache_ref(*state, "held", make_100_bytes, value, &entry, &err), 0);
    flight_cache_forget_prefix(*state, "he");
    assert_int_equal(units(*state), 0);
    assert_int_equal(destroyed_count, 0);
    assert_string_equal(flight_cache_get(entry), "held");
    flight_cache_unref(entry);
    assert_int_equal(destroyed_count, 1);
}

static void forgets_one_key_and_no_other_that_begins_like_it(void **state)
{
    touch(*state, "a");
    touch(*state, "ab");
    flight_cache_forget(*state, "a");
    flight_cache_forget(*state, "absent");
    assert_int_equal(destroyed_count, 1);
    assert_int_equal(units(*state), 100);
    assert_null(flight_cache_try(*state, "a"));
}

static void try_finds_existing_values_and_computes_none(void **state)
{
    assert_null(flight_cache_try(*state, "a"));
    assert_int_equal(made_count, 0);
    touch(*state, "a");
    touch(*state, "b");
    struct flight_entry *entry = flight_cache_try(*state, "a"); /* used, so b is the oldest now */
    assert_non_null(entry);
    assert_string_equal(flight_cache_get(entry), "a");
    flight_cache_unref(entry);
    touch(*state, "c");
    entry = flight_cache_try(*state, "a");
    assert_non_null(entry);
    flight_cache_unref(entry);
    assert_null(flight_cache_try(*state, "b"));
}

static enum err_code make_too_large(void *context, void **ret_value, size_t *ret_bytes,
                                    struct err *err)
{
    enum err_code code = make_100_bytes(context, ret_value, ret_bytes, err);
    *ret_bytes = 251 * (size_t)UNIT;
    return code;
}

static void a_value_above_the_limit_is_returned_but_not_cached(void **state)
{
    struct err err = {0};
    struct flight_entry *entry;
    char value[] = "large";
    touch(*state, "a");
    assert_int_equal(flight_cache_ref(*state, "large", make_too_large, value, &entry, &err), 0);
    assert_string_equal(flight_cache_get(entry), "large");
    assert_int_equal(units(*state), 100);
    flight_cache_unref(entry);
    assert_int_equal(destroyed_count, 1);
}

/* Otherwise 64 MiB of responses of 400 bytes could have 150 GiB of keys. */
static void keys_count_towards_the_size(void **state)
{
    enum { KEY_BYTES = 3 * UNIT };
    char *key = mem_new(char, KEY_BYTES + 1);
    memset(key, 'k', KEY_BYTES);
    for (int i = 0; i < 200; i++) {
        key[0] = (char)('A' + i % 26);
        key[1] = (char)('A' + i / 26);
        give(*state, key, 0);
    }
    assert_in_range(units(*state), 240, 250);
    assert_in_range(destroyed_count, 110, 130);
    mem_free(key);
}

struct caller {
    struct flight_cache *cache;
    flight_make *make;
    enum err_code code;
    char value[8];
};

static void *request(void *context)
{
    struct caller *caller = context;
    struct err err = {0};
    struct flight_entry *entry = NULL;
    caller->code = flight_cache_ref(caller->cache, "k", caller->make, caller->value, &entry, &err);
    flight_cache_unref(caller->code ? NULL : entry);
    return NULL;
}

enum { CALLERS = 16 };

static void request_at_once(struct flight_cache *cache, flight_make *make, struct caller *callers)
{
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.cache = cache, .make = make, .value = "v"};
        assert_int_equal(pthread_create(&threads[i], NULL, request, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
}

static void *request_with_deadline(void *context)
{
    struct caller *caller = context;
    struct err err = {0};
    struct flight_entry *entry = NULL;
    const struct wait_limit wait_limit = {.deadline_ns = 1};
    caller->code = flight_cache_ref_within(caller->cache, "k", &wait_limit, make_100_bytes,
                                           caller->value, &entry, &err);
    flight_cache_unref(caller->code ? NULL : entry);
    return NULL;
}

/* Computes the value after another thread, with a timeout, has waited in vain. */
static enum err_code make_after_another(void *context, void **ret_value, size_t *ret_bytes,
                                        struct err *err)
{
    struct caller *other = context;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, request_with_deadline, other), 0);
    pthread_join(thread, NULL);
    return make_100_bytes(other->value, ret_value, ret_bytes, err);
}

static void a_caller_with_a_timeout_does_not_wait_longer(void **state)
{
    struct err err = {0};
    struct flight_entry *entry = NULL;
    struct caller other = {.cache = *state, .value = "v"};
    assert_int_equal(flight_cache_ref(*state, "k", make_after_another, &other, &entry, &err), 0);
    assert_int_equal(other.code, ERR_CANCELLED);
    flight_cache_unref(entry);
    request_with_deadline(&other); /* an existing value needs no wait */
    assert_int_equal(other.code, ERR_NONE);
}

/* The first thread gives up, as a request does whose client has disconnected. */
static enum err_code give_up_once(void *context, void **ret_value, size_t *ret_bytes,
                                  struct err *err)
{
    const bool is_first = made_count == 0;
    clock_sleep_ms(100);
    if (!is_first)
        return make_100_bytes(context, ret_value, ret_bytes, err);
    made_count++;
    return err_set(err, ERR_CANCELLED, "nobody waits for it");
}

static void a_waiting_caller_continues_a_canceled_computation(void **state)
{
    struct caller callers[CALLERS];
    int cancelled_count = 0;
    request_at_once(*state, give_up_once, callers);
    for (int i = 0; i < CALLERS; i++) {
        cancelled_count += callers[i].code == ERR_CANCELLED;
        assert_true(callers[i].code == ERR_NONE || callers[i].code == ERR_CANCELLED);
    }
    assert_int_equal(cancelled_count, 1);
    assert_int_equal(made_count, 2);
}

static void concurrent_callers_share_one_computation(void **state)
{
    struct caller callers[CALLERS];
    request_at_once(*state, make_slowly, callers);
    assert_int_equal(made_count, 1);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(callers[i].code, ERR_NONE);
}

static void an_error_reaches_all_waiting_callers_and_is_not_cached(void **state)
{
    struct caller callers[CALLERS];
    request_at_once(*state, fail_to_make, callers);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(callers[i].code, ERR_CORRUPT);
    touch(*state, "k");
    assert_int_equal(units(*state), 100);
}

static void evicts_the_oldest_unused_value_with_a_prefix(void **state)
{
    struct flight_cache *cache = flight_cache_create(1000 * (size_t)UNIT, destroy_value);
    struct flight_entry *used;
    (void)state;
    touch(cache, "segment/1");
    used = flight_cache_try(cache, "segment/1");
    flight_cache_unref(used);
    touch(cache, "block/1");
    touch(cache, "block/2");
    used = flight_cache_try(cache, "block/1");
    assert_true(flight_cache_evict_oldest(cache, "block/"));
    assert_null(flight_cache_try(cache, "block/2"));
    assert_false(flight_cache_evict_oldest(cache, "block/")); /* block/1 is in use */
    flight_cache_unref(used);
    assert_true(flight_cache_evict_oldest(cache, "block/"));
    assert_false(flight_cache_evict_oldest(cache, "block/"));
    assert_int_equal(units(cache), 100);
    flight_cache_destroy(cache);
}

static enum err_code make_100_small_bytes(void *context, void **ret_value, size_t *ret_bytes,
                                          struct err *err)
{
    (void)err;
    *ret_value = mem_strdup(context);
    *ret_bytes = 100;
    return ERR_NONE;
}

/* If each eviction had to step over the values in use, this would take minutes instead of a tenth
 * of a second. */
static void values_in_use_do_not_slow_evictions_down(void **state)
{
    enum { USED_COUNT = 20000, NEW_COUNT = 200000, MAX_S = 10 };
    (void)state;
    struct flight_cache *cache = flight_cache_create(100 * USED_COUNT, destroy_value);
    struct flight_entry **used = mem_new(struct flight_entry *, USED_COUNT), *entry;
    struct err err;
    char key[32];
    const int64_t start_ns = clock_thread_cpu_ns();
    for (int i = 0; i < USED_COUNT + NEW_COUNT; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(flight_cache_ref(cache, key, make_100_small_bytes, key, &entry, &err), 0);
        if (i < USED_COUNT)
            used[i] = entry;
        else
            flight_cache_unref(entry);
    }
    assert_true(clock_thread_cpu_ns() - start_ns < MAX_S * CLOCK_NS_PER_S);
    for (int i = 0; i < USED_COUNT; i++)
        flight_cache_unref(used[i]);
    mem_free(used);
    flight_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accepts_values_computed_elsewhere, start, stop),
        cmocka_unit_test_setup_teardown(computes_a_value_once, start, stop),
        cmocka_unit_test_setup_teardown(evicts_the_least_recently_used, start, stop),
        cmocka_unit_test_setup_teardown(an_evicted_value_stays_valid_while_in_use, start, stop),
        cmocka_unit_test_setup_teardown(values_in_use_stay_available_beyond_the_limit, start, stop),
        cmocka_unit_test_setup_teardown(recently_used_values_stay_and_the_newest_is_evicted, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_changed_limit_applies_from_the_next_value_on, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_value_above_the_limit_is_returned_but_not_cached, start,
                                        stop),
        cmocka_unit_test_setup_teardown(keys_count_towards_the_size, start, stop),
        cmocka_unit_test_setup_teardown(forgets_one_key_and_no_other_that_begins_like_it, start,
                                        stop),
        cmocka_unit_test_setup_teardown(try_finds_existing_values_and_computes_none, start, stop),
        cmocka_unit_test_setup_teardown(concurrent_callers_share_one_computation, start, stop),
        cmocka_unit_test_setup_teardown(a_caller_with_a_timeout_does_not_wait_longer, start, stop),
        cmocka_unit_test_setup_teardown(a_waiting_caller_continues_a_canceled_computation, start,
                                        stop),
        cmocka_unit_test_setup_teardown(an_error_reaches_all_waiting_callers_and_is_not_cached,
                                        start, stop),
        cmocka_unit_test(evicts_the_oldest_unused_value_with_a_prefix),
        cmocka_unit_test(values_in_use_do_not_slow_evictions_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Concurrent queries for one result: what waiting queries do when the one that computes the result
 * fails. */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"
#include "store/query/result_cache.h"
#include "store/query/scan_internal.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum { READERS = 12, SLOW_MS = 150 };

static atomic_int made_count, at_once_count, most_at_once;
static atomic_bool first_fails;
static atomic_bool is_held; /* computing blocks, however slow the other threads are */

static enum err_code make(struct scan *scan, struct store_result *ret_result)
{
    const bool is_first = made_count++ == 0;
    const int at_once = ++at_once_count;
    if (at_once > most_at_once)
        most_at_once = at_once;
    do
        clock_sleep_ms(SLOW_MS); /* all other threads wait for the result */
    while (is_held);
    at_once_count--;
    if (is_first && first_fails)
        return err_set(scan_err(scan), ERR_BUSY, "no space for it");
    struct arena *arena = arena_create();
    struct profile *profile = arena_new(arena, struct profile, 1);
    profile->arena = arena;
    *ret_result = (struct store_result){.profile = profile, .own_profile = profile, .type = "a"};
    return ERR_NONE;
}

struct reader {
    struct result_cache *cache;
    const struct wait_limit *wait_limit;
    pthread_t thread;
    enum err_code code;
};

static void *request_result(void *context)
{
    struct reader *reader = context;
    struct err err;
    struct store_query query = {.tenant_id = 1};
    if (reader->wait_limit)
        query.wait_limit = *reader->wait_limit;
    struct scan scan = {.query = &query, .err = &err};
    struct store_result result = {0};
    reader->code = result_cache_ref(reader->cache, &scan, "1 x", make, &result);
    store_result_fini(&result);
    return NULL;
}

static void begin(struct reader *reader)
{
    assert_int_equal(pthread_create(&reader->thread, NULL, request_result, reader), 0);
}

static int start(void **state)
{
    made_count = at_once_count = most_at_once = 0;
    first_fails = is_held = false;
    *state = result_cache_create(1 << 20);
    return 0;
}

static int stop(void **state)
{
    result_cache_destroy(*state);
    return 0;
}

static int count_failed(struct result_cache *cache)
{
    struct reader readers[READERS];
    int failed_count = 0;
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.cache = cache};
        begin(&readers[i]);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        failed_count += readers[i].code != ERR_NONE;
    }
    return failed_count;
}

static void concurrent_queries_share_one_result(void **state)
{
    assert_int_equal(count_failed(*state), 0);
    assert_int_equal(made_count, 1);
}

/* The failing query gets its error; another one computes the result, and the rest wait for it. */
static void when_one_query_fails_another_computes_the_result(void **state)
{
    first_fails = true;
    assert_int_equal(count_failed(*state), 1);
    assert_int_equal(made_count, 2);
    assert_int_equal(most_at_once, 1);
}

static void an_expired_query_neither_waits_nor_computes(void **state)
{
    const atomic_bool is_cancelled = true;
    const struct wait_limit gone = {.is_cancelled = &is_cancelled}, late = {.deadline_ns = 1};
    struct reader maker = {.cache = *state};
    struct reader cancelled[] = {{.cache = *state, .wait_limit = &gone},
                                 {.cache = *state, .wait_limit = &late}};
    is_held = true;
    begin(&maker);
    while (!made_count)
        clock_sleep_ms(1);
    for (int i = 0; i < 2; i++) {
        begin(&cancelled[i]);
        pthread_join(cancelled[i].thread, NULL);
        assert_int_equal(cancelled[i].code, ERR_CANCELLED);
    }
    is_held = false;
    pthread_join(maker.thread, NULL);
    assert_int_equal(maker.code, ERR_NONE);
    assert_int_equal(made_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(concurrent_queries_share_one_result, start, stop),
        cmocka_unit_test_setup_teardown(when_one_query_fails_another_computes_the_result, start,
                                        stop),
        cmocka_unit_test_setup_teardown(an_expired_query_neither_waits_nor_computes, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "api/core/query_memory.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "store/store.h"

#include <pthread.h>

enum { MIB = 1 << 20, BUDGET = 100 * MIB };

/* A query of a tenant, and the slots of its request. */
struct caller {
    struct store_query query;
    struct query_memory_slot *slots;
    size_t needed; /* by the waiting query */
    enum err_code code;
    struct err err;
    pthread_t thread;
};

struct fixture {
    struct query_memory *memory;
    struct arena *arena;
};

static int start(void **state)
{
    struct fixture *fixture = mem_new(struct fixture, 1);
    fixture->memory = query_memory_create(BUDGET);
    fixture->arena = arena_create();
    *state = fixture;
    return 0;
}

static int stop(void **state)
{
    struct fixture *fixture = *state;
    query_memory_destroy(fixture->memory);
    arena_destroy(fixture->arena);
    mem_free(fixture);
    return 0;
}

static void enter(struct fixture *fixture, struct caller *caller, int64_t tenant_id)
{
    caller->query.tenant_id = tenant_id;
    query_memory_enter(fixture->memory, fixture->arena, &caller->slots, &caller->query);
}

static size_t grow(const struct caller *caller, size_t bytes)
{
    return caller->query.memory->grow(caller->query.memory->context, bytes);
}

static enum err_code wait_for(struct caller *caller, size_t needed)
{
    return caller->query.memory->wait(caller->query.memory->context, needed, needed, &caller->err);
}

static void *wait_on_thread(void *context)
{
    struct caller *caller = context;
    caller->code = wait_for(caller, caller->needed);
    return NULL;
}

/* Starts a thread that waits, and returns when it does. */
static void begin_to_wait(struct fixture *fixture, struct caller *caller, size_t needed)
{
    const int count = query_memory_waiting_count(fixture->memory);
    caller->needed = needed;
    assert_int_equal(pthread_create(&caller->thread, NULL, wait_on_thread, caller), 0);
    while (query_memory_waiting_count(fixture->memory) == count)
        clock_sleep_ms(1);
}

static void small_queries_are_free_and_larger_ones_grow(void **state)
{
    struct fixture *fixture = *state;
    struct caller one = {0}, other = {0};
    enter(fixture, &one, 1);
    enter(fixture, &other, 1);
    assert_true(grow(&one, 1) >= 1);
    assert_int_equal(query_memory_used_bytes(fixture->memory), 0);
    assert_true(grow(&one, 60 * MIB) >= (size_t)60 * MIB);
    assert_int_equal(query_memory_used_bytes(fixture->memory), 60 * MIB);
    assert_true(grow(&other, 41 * MIB) < (size_t)41 * MIB);
    assert_true(grow(&other, 20 * MIB) >= (size_t)20 * MIB); /* a small query */
    assert_true(grow(&other, 40 * MIB) >= (size_t)40 * MIB);
    assert_int_equal(query_memory_used_bytes(fixture->memory), BUDGET);
    query_memory_leave(&one.slots);
    query_memory_leave(&other.slots);
    assert_int_equal(query_memory_used_bytes(fixture->memory), 0);
}

static void a_query_without_memory_frees_all_and_waits_for_twice_as_much(void **state)
{
    struct fixture *fixture = *state;
    struct caller one = {0}, other = {0};
    enter(fixture, &one, 1);
    enter(fixture, &other, 1);
    assert_true(grow(&one, 60 * MIB) >= (size_t)60 * MIB);
    assert_true(grow(&other, 36 * MIB) >= (size_t)36 * MIB);
    begin_to_wait(fixture, &other, 80 * MIB);
    assert_int_equal(query_memory_used_bytes(fixture->memory), 60 * MIB);
    query_memory_leave(&one.slots);
    pthread_join(other.thread, NULL);
    assert_int_equal(other.code, ERR_NONE);
    assert_true(grow(&other, 80 * MIB) >= (size_t)80 * MIB);
    const struct store_memory *memory = other.query.memory;
    assert_int_equal(memory->wait(memory->context, 40 * MIB, SIZE_MAX, &other.err), ERR_NONE);
    assert_int_equal(query_memory_used_bytes(fixture->memory), 80 * MIB);
    query_memory_leave(&other.slots);
}

static void more_than_the_budget_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct caller caller = {0};
    enter(fixture, &caller, 1);
    assert_true(grow(&caller, BUDGET + 1) <= (size_t)BUDGET);
    assert_int_equal(wait_for(&caller, BUDGET + 1), ERR_LIMIT);
    assert_non_null(strstr(caller.err.message, "--max-query-memory"));
    query_memory_leave(&caller.slots);
}

static void the_tenant_with_the_least_memory_is_next(void **state)
{
    struct fixture *fixture = *state;
    struct caller large = {0}, other = {0}, more = {0}, poor = {0};
    enter(fixture, &large, 1);
    enter(fixture, &other, 3);
    enter(fixture, &more, 1);
    enter(fixture, &poor, 2);
    assert_true(grow(&large, 48 * MIB) >= (size_t)48 * MIB);
    assert_true(grow(&other, 44 * MIB) >= (size_t)44 * MIB);
    begin_to_wait(fixture, &more, 40 * MIB); /* first, but of the tenant that holds most */
    begin_to_wait(fixture, &poor, 40 * MIB);
    assert_true(grow(&large, 52 * MIB) < (size_t)52 * MIB); /* free memory is for those that wait */
    query_memory_leave(&other.slots);
    pthread_join(poor.thread, NULL);
    assert_int_equal(poor.code, ERR_NONE);
    assert_int_equal(query_memory_waiting_count(fixture->memory), 1);
    query_memory_leave(&large.slots);
    pthread_join(more.thread, NULL);
    assert_int_equal(more.code, ERR_NONE);
    query_memory_leave(&more.slots);
    query_memory_leave(&poor.slots);
}

static void a_request_with_another_result_in_memory_does_not_wait(void **state)
{
    struct fixture *fixture = *state;
    struct caller both = {0}, other = {0};
    enter(fixture, &both, 1);
    assert_true(grow(&both, 40 * MIB) >= (size_t)40 * MIB);
    enter(fixture, &both, 1); /* the other side of a diff */
    enter(fixture, &other, 2);
    assert_true(grow(&other, 60 * MIB) >= (size_t)60 * MIB);
    assert_true(grow(&both, 40 * MIB) < (size_t)40 * MIB);
    assert_int_equal(wait_for(&both, 40 * MIB), ERR_BUSY);
    assert_int_equal(both.err.retry_after_s, QUERY_MEMORY_RETRY_S);
    query_memory_leave(&both.slots);
    query_memory_leave(&other.slots);
    assert_int_equal(query_memory_used_bytes(fixture->memory), 0);
}

static void results_that_never_fit_together_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct caller both = {0};
    enter(fixture, &both, 1);
    assert_true(grow(&both, 60 * MIB) >= (size_t)60 * MIB);
    enter(fixture, &both, 1);
    assert_int_equal(wait_for(&both, 41 * MIB), ERR_LIMIT);
    assert_int_equal(wait_for(&both, 40 * MIB), ERR_NONE); /* what is free */
    assert_int_equal(query_memory_used_bytes(fixture->memory), 100 * MIB);
    query_memory_leave(&both.slots);
}

static void memory_reserved_in_advance_does_not_count_for_the_final_limit(void **state)
{
    struct fixture *fixture = *state;
    struct caller both = {0};
    enter(fixture, &both, 1);
    const struct store_memory *calls = both.query.memory;
    assert_int_equal(calls->wait(calls->context, 40 * MIB, BUDGET, &both.err), ERR_NONE);
    assert_int_equal(query_memory_used_bytes(fixture->memory), 80 * MIB);
    enter(fixture, &both, 1);
    assert_int_equal(wait_for(&both, 60 * MIB), ERR_BUSY);
    assert_int_equal(wait_for(&both, 61 * MIB), ERR_LIMIT);
    query_memory_leave(&both.slots);
}

static void an_expired_query_does_not_wait(void **state)
{
    struct fixture *fixture = *state;
    atomic_bool is_cancelled = true;
    struct caller other = {0}, late = {.query.wait_limit.deadline_ns = 1},
                  gone = {.query.wait_limit.is_cancelled = &is_cancelled};
    enter(fixture, &other, 1);
    enter(fixture, &late, 2);
    enter(fixture, &gone, 2);
    assert_true(grow(&other, BUDGET) >= (size_t)BUDGET);
    assert_int_equal(wait_for(&late, 40 * MIB), ERR_BUSY);
    assert_int_equal(wait_for(&gone, 40 * MIB), ERR_CANCELLED);
    query_memory_leave(&other.slots);
    query_memory_leave(&late.slots);
    query_memory_leave(&gone.slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_queries_are_free_and_larger_ones_grow, start, stop),
        cmocka_unit_test_setup_teardown(
            a_query_without_memory_frees_all_and_waits_for_twice_as_much, start, stop),
        cmocka_unit_test_setup_teardown(more_than_the_budget_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(the_tenant_with_the_least_memory_is_next, start, stop),
        cmocka_unit_test_setup_teardown(a_request_with_another_result_in_memory_does_not_wait,
                                        start, stop),
        cmocka_unit_test_setup_teardown(results_that_never_fit_together_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(
            memory_reserved_in_advance_does_not_count_for_the_final_limit, start, stop),
        cmocka_unit_test_setup_teardown(an_expired_query_does_not_wait, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "api/core/memory_gate.h"
#include "api/core/memory_info.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MIB (UINT64_C(1) << 20)

enum { CLIENT = 1, OTHER = 2 };

static void decodes_small_profiles_without_waiting(void **state)
{
    (void)state;
    struct err err = {0};
    struct profile *profile;
    struct memory_gate_slot slot;
    enum format format;
    struct memory_gate *gate = memory_gate_create(64 * MIB);
    assert_int_equal(memory_gate_enter(gate, CLIENT, 64 * MIB, "all", &err), ERR_NONE);
    assert_int_equal(memory_gate_decode(gate, CLIENT, SPAN_LITERAL("main;f 1\n"), NULL, &format,
                                        &profile, &slot, &err),
                     ERR_NONE);
    assert_int_equal(format, FORMAT_FOLDED);
    assert_int_equal(slot.held_bytes, 0);
    assert_true(slot.peak_bytes <= MEMORY_GATE_LIGHT_PEAK);
    profile_destroy(profile);
    memory_gate_leave(gate, CLIENT, 64 * MIB);
    memory_gate_destroy(gate);
}

static void decodes_a_large_profile_after_it_entered(void **state)
{
    (void)state;
    struct err err = {0};
    struct profile *profile;
    struct profile_limits limits = {0};
    struct memory_gate_slot slot;
    struct buf text, packed;
    buf_init(&text, (size_t)MEMORY_GATE_LIGHT_BYTES * 2);
    buf_init(&packed, 1 << 20);
    while (text.size <= MEMORY_GATE_LIGHT_BYTES)
        buf_append_text(&text, "main;parse;read 1\n");
    assert_int_equal(compress_gzip(buf_span(&text), COMPRESS_GZIP_FAST, &packed, &err), ERR_NONE);
    struct memory_gate *gate = memory_gate_create(256 * MIB);
    assert_int_equal(
        memory_gate_decode(gate, CLIENT, buf_span(&packed), &limits, NULL, &profile, &slot, &err),
        ERR_NONE);
    assert_int_equal(profile->sample_count, 1);
    /* The size of the profile, and no longer its possible maximum. */
    assert_true(slot.held_bytes > 0 && slot.held_bytes < MIB);
    assert_true(slot.peak_bytes > MEMORY_GATE_LIGHT_PEAK);
    assert_int_equal(memory_gate_used_bytes(gate), slot.held_bytes);
    profile_destroy(profile);
    memory_gate_leave(gate, CLIENT, slot.held_bytes);
    limits.raw_bytes = MEMORY_GATE_LIGHT_BYTES;
    assert_int_equal(
        memory_gate_decode(gate, CLIENT, buf_span(&packed), &limits, NULL, &profile, &slot, &err),
        ERR_TOO_LARGE);
    assert_int_equal(memory_gate_used_bytes(gate), 0);
    memory_gate_destroy(gate);
    buf_fini(&text);
    buf_fini(&packed);
}

static void refuses_a_profile_that_never_fits_and_names_the_setting(void **state)
{
    (void)state;
    struct err err = {0};
    struct memory_gate *gate = memory_gate_create(64 * MIB);
    assert_int_equal(memory_gate_enter(gate, CLIENT, 65 * MIB, "this report", &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, "this report needs about 66 MiB"));
    assert_non_null(strstr(err.message, "64 MiB"));
    assert_non_null(strstr(err.message, "--max-heavy-memory"));
    memory_gate_destroy(gate);
}

static uint64_t limit_mib(enum memory_limit limit, uint64_t total_mib)
{
    return memory_info_limit_of(limit, total_mib * MIB) / MIB;
}

/* Returns the memory that the process takes if every limit is reached, two kinds of worker threads
 * fill their queues, and a merge needs as much for its result as for its inputs. */
static uint64_t sum_of_limits(uint64_t total_mib)
{
    uint64_t sum_mib = limit_mib(MEMORY_MERGES, total_mib) + limit_mib(MEMORY_BUFFERS, total_mib) +
                       limit_mib(MEMORY_QUEUES, total_mib);
    for (enum memory_limit limit = 0; limit < MEMORY_LIMIT_COUNT; limit++)
        sum_mib += limit_mib(limit, total_mib);
    return sum_mib;
}

static void the_defaults_fit_the_memory_together(void **state)
{
    (void)state;
    struct memory_gate *gate = memory_gate_create(0);
    assert_int_equal(memory_gate_max_bytes(gate), memory_info_limit_bytes(MEMORY_HEAVY));
    memory_gate_destroy(gate);
    assert_true(memory_info_total_bytes() > 0);
    assert_int_equal(memory_info_part_bytes(1 << 30, 7 * MIB, 8 * MIB), 7 * MIB);
    for (uint64_t total_mib = 1024; total_mib <= 64 * 1024; total_mib += 256)
        assert_in_range(sum_of_limits(total_mib), total_mib / 8, total_mib - 384);
    assert_int_equal(limit_mib(MEMORY_HEAVY, 1024), 256);
    assert_int_equal(limit_mib(MEMORY_HEAVY, 64 * 1024), 4096);
    assert_int_equal(limit_mib(MEMORY_QUERIES, 256), 64);
}

/* A client may have half of the gate's 100 MiB: two visitors of 20 to 24 MiB at the same time. */
enum { HEAVY_COUNT = 2 };

struct visitor {
    struct memory_gate *gate;
    int64_t client;
    uint64_t bytes;
    atomic_ullong *inside;
    atomic_ullong *most_inside;
    enum err_code code;
};

static void *visit(void *context)
{
    struct visitor *visitor = context;
    struct err err = {0};
    visitor->code =
        memory_gate_enter(visitor->gate, visitor->client, visitor->bytes, "a visit", &err);
    if (visitor->code)
        return NULL;
    uint64_t now = atomic_fetch_add(visitor->inside, visitor->bytes) + visitor->bytes;
    if (now > *visitor->most_inside)
        *visitor->most_inside = now;
    clock_sleep_ms(100);
    atomic_fetch_sub(visitor->inside, visitor->bytes);
    memory_gate_leave(visitor->gate, visitor->client, visitor->bytes);
    return NULL;
}

static void some_wait_for_memory_and_others_are_refused(void **state)
{
    (void)state;
    enum { VISITORS = HEAVY_COUNT + MEMORY_GATE_WAITERS + 6 };
    struct visitor visitors[VISITORS];
    pthread_t threads[VISITORS];
    atomic_ullong inside = 0, most_inside = 0;
    struct memory_gate *gate = memory_gate_create(100 * MIB);
    for (unsigned i = 0; i < VISITORS; i++) {
        visitors[i] = (struct visitor){.gate = gate,
                                       .client = CLIENT,
                                       .bytes = (20 + i % 3 * 2) * MIB,
                                       .inside = &inside,
                                       .most_inside = &most_inside};
        assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
    }
    int refused_count = 0;
    for (int i = 0; i < VISITORS; i++) {
        pthread_join(threads[i], NULL);
        refused_count += visitors[i].code == ERR_BUSY;
    }
    assert_true(most_inside > 24 * MIB && most_inside <= 50 * MIB);
    assert_true(refused_count > 0 && refused_count <= 6);
    assert_int_equal(memory_gate_used_bytes(gate), 0);
    memory_gate_destroy(gate);
}

struct caller {
    struct memory_gate *gate;
    int64_t client;
    uint64_t bytes;
    pthread_t thread;
    atomic_bool has_ended;
    enum err_code code;
};

static void *call(void *context)
{
    struct caller *caller = context;
    struct err err = {0};
    caller->code = memory_gate_enter(caller->gate, caller->client, caller->bytes, "a call", &err);
    atomic_store(&caller->has_ended, true);
    return NULL;
}

static void start_call(struct memory_gate *gate, struct caller *caller, int64_t client,
                       uint64_t bytes)
{
    *caller = (struct caller){.gate = gate, .client = client, .bytes = bytes};
    assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static void wait_for_waiting(struct memory_gate *gate, int count)
{
    while (memory_gate_waiting_count(gate) != count)
        clock_sleep_ms(1);
}

static void end_call(struct caller *caller, enum err_code code)
{
    pthread_join(caller->thread, NULL);
    assert_int_equal(caller->code, code);
}

/* One client holds as much as it gets, and fills the list of those that wait. */
static void another_client_enters_at_once(void **state)
{
    (void)state;
    struct err err = {0};
    struct caller callers[MEMORY_GATE_WAITERS], other;
    struct memory_gate *gate = memory_gate_create(100 * MIB);
    for (int i = 0; i < 2; i++)
        assert_int_equal(memory_gate_enter(gate, CLIENT, 20 * MIB, "a call", &err), ERR_NONE);
    assert_false(memory_gate_try_enter(gate, CLIENT, 20 * MIB)); /* more than half */
    for (int i = 0; i < MEMORY_GATE_WAITERS; i++) {
        start_call(gate, &callers[i], CLIENT, 20 * MIB);
        wait_for_waiting(gate, i + 1);
    }
    assert_true(memory_gate_try_enter(gate, OTHER, 20 * MIB));
    start_call(gate, &other, OTHER, 30 * MIB);
    end_call(&other, ERR_NONE);
    for (int i = 0; i < MEMORY_GATE_WAITERS; i++)
        assert_false(atomic_load(&callers[i].has_ended));
    /* Not even a small request of the client passes its earlier ones. */
    assert_false(memory_gate_try_enter(gate, CLIENT, MIB));
    for (int i = 0; i < MEMORY_GATE_WAITERS; i++) {
        memory_gate_leave(gate, CLIENT, 20 * MIB);
        end_call(&callers[i], ERR_NONE);
    }
    assert_int_equal(memory_gate_used_bytes(gate), 90 * MIB);
    memory_gate_leave(gate, CLIENT, 40 * MIB);
    memory_gate_leave(gate, OTHER, 50 * MIB);
    memory_gate_destroy(gate);
}

/* The list of those that wait is full of one client's requests when another client has to wait. */
static void another_client_gets_an_entry_and_the_next_bytes(void **state)
{
    (void)state;
    struct err err = {0};
    struct caller callers[MEMORY_GATE_WAITERS], other;
    struct memory_gate *gate = memory_gate_create(100 * MIB);
    assert_int_equal(memory_gate_enter(gate, CLIENT, 90 * MIB, "more than half", &err), ERR_NONE);
    for (int i = 0; i < MEMORY_GATE_WAITERS; i++) {
        start_call(gate, &callers[i], CLIENT, 20 * MIB);
        wait_for_waiting(gate, i + 1);
    }
    start_call(gate, &other, OTHER, 60 * MIB);
    end_call(&callers[MEMORY_GATE_WAITERS - 1], ERR_BUSY); /* it lost its slot */
    assert_false(atomic_load(&other.has_ended));
    memory_gate_leave(gate, CLIENT, 90 * MIB);
    end_call(&other, ERR_NONE);
    for (int i = 0; i < 2; i++)
        end_call(&callers[i], ERR_NONE);
    assert_false(atomic_load(&callers[2].has_ended));
    memory_gate_leave(gate, CLIENT, 40 * MIB);
    end_call(&callers[2], ERR_NONE);
    memory_gate_leave(gate, CLIENT, 20 * MIB);
    memory_gate_leave(gate, OTHER, 60 * MIB);
    assert_int_equal(memory_gate_used_bytes(gate), 0);
    memory_gate_destroy(gate);
}

/* A request that needs more than half waits until its client holds nothing, and later requests of
 * the client wait behind it. */
static void a_request_for_more_than_half_waits_for_its_client_only(void **state)
{
    (void)state;
    struct err err = {0};
    struct caller large, small;
    struct memory_gate *gate = memory_gate_create(100 * MIB);
    assert_int_equal(memory_gate_enter(gate, CLIENT, 10 * MIB, "a call", &err), ERR_NONE);
    start_call(gate, &large, CLIENT, 70 * MIB);
    wait_for_waiting(gate, 1);
    start_call(gate, &small, CLIENT, MIB);
    wait_for_waiting(gate, 2);
    memory_gate_leave(gate, CLIENT, 10 * MIB);
    end_call(&large, ERR_NONE);
    assert_false(atomic_load(&small.has_ended));
    memory_gate_leave(gate, CLIENT, 70 * MIB);
    end_call(&small, ERR_NONE);
    memory_gate_leave(gate, CLIENT, MIB);
    memory_gate_destroy(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_small_profiles_without_waiting),
        cmocka_unit_test(decodes_a_large_profile_after_it_entered),
        cmocka_unit_test(refuses_a_profile_that_never_fits_and_names_the_setting),
        cmocka_unit_test(the_defaults_fit_the_memory_together),
        cmocka_unit_test(some_wait_for_memory_and_others_are_refused),
        cmocka_unit_test(another_client_enters_at_once),
        cmocka_unit_test(another_client_gets_an_entry_and_the_next_bytes),
        cmocka_unit_test(a_request_for_more_than_half_waits_for_its_client_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

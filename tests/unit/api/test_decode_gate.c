#include "tests/unit/test.h"

#include "api/decode_gate.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/profile/profile.h"

#include <pthread.h>
#include <stdatomic.h>

static void decodes_what_is_light_outside_the_gate(void **state)
{
    (void)state;
    struct err err = {0};
    struct profile *profile;
    struct profile_limits limits = {0};
    enum format format;
    struct decode_gate *gate = decode_gate_create();
    for (int i = 0; i < DECODE_GATE_HEAVY_COUNT; i++)
        assert_int_equal(decode_gate_enter(gate, &err), ERR_NONE);
    assert_int_equal(
        decode_gate_decode(gate, SPAN_LITERAL("main;f 1\n"), &limits, &format, &profile, &err),
        ERR_NONE);
    assert_int_equal(format, FORMAT_FOLDED);
    profile_destroy(profile);
    decode_gate_destroy(gate);
}

static void expands_a_heavy_profile_behind_the_gate(void **state)
{
    (void)state;
    struct err err = {0};
    struct profile *profile;
    struct profile_limits limits = {0};
    struct buf text, packed;
    buf_init(&text, (size_t)DECODE_GATE_LIGHT_BYTES * 2);
    buf_init(&packed, 1 << 20);
    while (text.size <= DECODE_GATE_LIGHT_BYTES)
        buf_append_text(&text, "main;parse;read 1\n");
    assert_int_equal(compress_gzip(buf_span(&text), COMPRESS_GZIP_FAST, &packed, &err), ERR_NONE);
    struct decode_gate *gate = decode_gate_create();
    assert_int_equal(decode_gate_decode(gate, buf_span(&packed), &limits, NULL, &profile, &err),
                     ERR_NONE);
    assert_int_equal(profile->sample_count, 1);
    profile_destroy(profile);
    limits.raw_bytes = DECODE_GATE_LIGHT_BYTES;
    assert_int_equal(decode_gate_decode(gate, buf_span(&packed), &limits, NULL, &profile, &err),
                     ERR_TOO_LARGE);
    decode_gate_destroy(gate);
    buf_fini(&text);
    buf_fini(&packed);
}

struct visitor {
    struct decode_gate *gate;
    atomic_int *inside;
    atomic_int *most_inside;
    enum err_code code;
};

static void *visit(void *context)
{
    struct visitor *visitor = context;
    struct err err = {0};
    visitor->code = decode_gate_enter(visitor->gate, &err);
    if (visitor->code)
        return NULL;
    int now = ++*visitor->inside;
    if (now > *visitor->most_inside)
        *visitor->most_inside = now;
    clock_sleep_ms(100);
    --*visitor->inside;
    decode_gate_leave(visitor->gate);
    return NULL;
}

static void lets_few_in_some_wait_and_refuses_the_rest(void **state)
{
    (void)state;
    enum { VISITORS = DECODE_GATE_HEAVY_COUNT + DECODE_GATE_WAITERS + 6 };
    struct visitor visitors[VISITORS];
    pthread_t threads[VISITORS];
    atomic_int inside = 0, most_inside = 0;
    struct decode_gate *gate = decode_gate_create();
    for (int i = 0; i < VISITORS; i++) {
        visitors[i] =
            (struct visitor){.gate = gate, .inside = &inside, .most_inside = &most_inside};
        assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
    }
    int refused_count = 0;
    for (int i = 0; i < VISITORS; i++) {
        pthread_join(threads[i], NULL);
        refused_count += visitors[i].code == ERR_BUSY;
    }
    assert_true(most_inside <= DECODE_GATE_HEAVY_COUNT);
    assert_true(refused_count > 0 && refused_count <= 6);
    decode_gate_destroy(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_is_light_outside_the_gate),
        cmocka_unit_test(expands_a_heavy_profile_behind_the_gate),
        cmocka_unit_test(lets_few_in_some_wait_and_refuses_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

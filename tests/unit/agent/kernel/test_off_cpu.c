#include "tests/unit/test.h"

#include "agent/kernel/off_cpu.h"
#include "bpf/shared.h"

enum { GIVEN_MAX = 8 };

struct given {
    uint32_t count;
    uint64_t addresses[GIVEN_MAX];
    int64_t off_cpu_ns[GIVEN_MAX];
};

static void note(void *context, const struct sample_event *event, int64_t off_cpu_ns)
{
    struct given *given = context;
    assert_true(given->count < GIVEN_MAX);
    assert_int_equal(event->user_count, 1);
    given->addresses[given->count] = event->addresses[0];
    given->off_cpu_ns[given->count++] = off_cpu_ns;
}

static void begin(struct off_cpu *off_cpu, uint32_t thread_id, uint64_t time_ns, uint64_t address)
{
    static struct sample_event event;
    event = (struct sample_event){.kind = SAMPLE_SWITCH_OUT,
                                  .thread_id = thread_id,
                                  .time_ns = time_ns,
                                  .user_count = 1,
                                  .addresses = {address}};
    off_cpu_begin(off_cpu, &event);
}

static void end(struct off_cpu *off_cpu, uint32_t thread_id, uint64_t since_ns, uint64_t time_ns)
{
    static struct sample_event event;
    event = (struct sample_event){
        .kind = SAMPLE_SWITCH_IN, .thread_id = thread_id, .amount = since_ns, .time_ns = time_ns};
    off_cpu_end(off_cpu, &event);
}

static void an_interval_is_reported_with_its_stack_when_it_ends(void **state)
{
    (void)state;
    struct given given = {0};
    struct off_cpu *off_cpu = off_cpu_create(0, note, &given);
    begin(off_cpu, 1, 100, 0xa);
    begin(off_cpu, 1 + (1 << 14), 200, 0xb); /* in the same bucket */
    end(off_cpu, 1, 100, 1100);
    end(off_cpu, 1, 100, 1200); /* a second end of the same interval */
    end(off_cpu, 1 + (1 << 14), 200, 700);
    assert_int_equal(given.count, 2);
    assert_int_equal(given.addresses[0], 0xa);
    assert_int_equal(given.off_cpu_ns[0], 1000);
    assert_int_equal(given.addresses[1], 0xb);
    assert_int_equal(given.off_cpu_ns[1], 500);
    off_cpu_destroy(off_cpu);
}

static void a_lost_end_causes_no_long_interval(void **state)
{
    (void)state;
    struct given given = {0};
    struct off_cpu *off_cpu = off_cpu_create(0, note, &given);
    begin(off_cpu, 1, 100, 0xa);
    begin(off_cpu, 1, 5000, 0xb); /* the end of the first interval was lost */
    end(off_cpu, 1, 100, 9000);   /* too late: belongs to the first interval */
    assert_int_equal(given.count, 0);
    end(off_cpu, 1, 5000, 6000);
    assert_int_equal(given.count, 1);
    assert_int_equal(given.addresses[0], 0xb);
    assert_int_equal(given.off_cpu_ns[0], 1000);
    off_cpu_destroy(off_cpu);
}

static void a_long_interval_is_divided_among_windows(void **state)
{
    (void)state;
    struct given given = {0};
    struct off_cpu *off_cpu = off_cpu_create(0, note, &given);
    begin(off_cpu, 1, 1000, 0xa);
    off_cpu_cut(off_cpu, 4000);
    off_cpu_cut(off_cpu, 4000);
    end(off_cpu, 1, 1000, 4500);
    assert_int_equal(given.count, 2);
    assert_int_equal(given.off_cpu_ns[0], 3000);
    assert_int_equal(given.off_cpu_ns[1], 500);
    off_cpu_destroy(off_cpu);
}

static void short_intervals_are_omitted_and_long_ones_complete(void **state)
{
    (void)state;
    struct given given = {0};
    struct off_cpu *off_cpu = off_cpu_create(1000, note, &given);
    begin(off_cpu, 1, 0, 0xa);
    end(off_cpu, 1, 0, 999);
    begin(off_cpu, 2, 0, 0xb);
    off_cpu_cut(off_cpu, 600); /* shorter than the minimum */
    end(off_cpu, 2, 0, 1500);
    begin(off_cpu, 3, 0, 0xc);
    off_cpu_cut(off_cpu, 1200);
    end(off_cpu, 3, 0, 1300); /* the rest of an interval that was cut */
    assert_int_equal(given.count, 3);
    assert_int_equal(given.off_cpu_ns[0], 1500);
    assert_int_equal(given.off_cpu_ns[1], 1200);
    assert_int_equal(given.off_cpu_ns[2], 100);
    off_cpu_destroy(off_cpu);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct given given = {0};
    struct off_cpu *off_cpu = off_cpu_create(0, note, &given);
    for (uint32_t i = 1; i <= 1000000; i++)
        begin(off_cpu, i, i, 0xa);
    assert_true(off_cpu_refused(off_cpu) > 0);
    off_cpu_destroy(off_cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_is_reported_with_its_stack_when_it_ends),
        cmocka_unit_test(a_lost_end_causes_no_long_interval),
        cmocka_unit_test(a_long_interval_is_divided_among_windows),
        cmocka_unit_test(short_intervals_are_omitted_and_long_ones_complete),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

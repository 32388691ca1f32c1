#include "tests/unit/test.h"

#include "agent/profile/idle_times.h"
#include "lib/base/clock.h"
#include "lib/profile/batch/batch_labels.h"

#include <stdio.h>

#define S CLOCK_NS_PER_S

static const struct batch_text_label labels[] = {{SPAN_LITERAL("service.name"), SPAN_LITERAL("a")}};

struct reported {
    char text[1024];
    size_t size;
};

static void report(void *context, const struct idle_time *time)
{
    struct reported *reported = context;
    assert_int_equal(time->label_count, 1);
    assert_true(span_equal_text(time->labels[0].value, "a"));
    reported->size += (size_t)snprintf(
        reported->text + reported->size, sizeof(reported->text) - reported->size, "%.*s %lld-%lld ",
        SPAN_PRINT(time->key), (long long)(time->begin_ns / S), (long long)(time->end_ns / S));
}

static bool add(struct idle_times *times, const char *key, int64_t begin_s, int64_t end_s)
{
    return idle_times_add(times, &(struct idle_time){.key = span_text(key),
                                                     .labels = labels,
                                                     .label_count = 1,
                                                     .begin_ns = begin_s * S,
                                                     .end_ns = end_s * S});
}

static void assert_reported(struct idle_times *times, int64_t begin_s, int64_t end_s, bool is_last,
                            const char *wanted)
{
    struct reported reported = {.size = 0};
    idle_times_report(times, begin_s * S, end_s * S, is_last, report, &reported);
    assert_string_equal(reported.text, wanted);
}

static void idle_time_is_reported_after_a_minute_and_at_its_end(void **state)
{
    (void)state;
    struct idle_times *times = idle_times_create();
    for (int64_t at = 0; at < 120; at += 10) {
        assert_true(add(times, "long", at, at + 10));
        assert_true(add(times, "long", at, at + 10)); /* another process */
        if (at < 20)
            assert_true(add(times, "short", at, at + 10));
        assert_reported(times, at, at + 10, false,
                        at == 20    ? "short 0-20 "
                        : at == 50  ? "long 0-60 "
                        : at == 110 ? "long 60-120 "
                                    : "");
    }
    assert_true(add(times, "long", 120, 130));
    assert_reported(times, 120, 130, true, "long 120-130 ");
    assert_reported(times, 130, 140, true, "");
    idle_times_destroy(times);
}

static void six_short_windows_are_reported_together_and_long_ones_at_once(void **state)
{
    (void)state;
    struct idle_times *times = idle_times_create();
    for (int64_t at = 0; at < 12; at++) {
        assert_true(add(times, "a", at, at + 1));
        assert_reported(times, at, at + 1, false, at == 5 ? "a 0-6 " : at == 11 ? "a 6-12 " : "");
    }
    assert_true(add(times, "a", 12, 72));
    assert_reported(times, 12, 72, false, "a 12-72 ");
    idle_times_destroy(times);
}

/* Idle time before the change is reported, and the caller must report the window. */
static void a_clock_change_ends_idle_time(void **state)
{
    (void)state;
    struct idle_times *times = idle_times_create();
    assert_true(add(times, "a", 100, 110));
    assert_reported(times, 100, 110, false, "");
    assert_false(add(times, "a", 50, 60));
    assert_reported(times, 50, 60, false, "a 100-110 ");
    assert_true(add(times, "a", 60, 70));
    assert_reported(times, 60, 70, true, "a 60-70 ");
    idle_times_destroy(times);
}

static void the_number_of_idle_times_is_bounded(void **state)
{
    (void)state;
    struct idle_times *times = idle_times_create();
    struct reported reported = {.size = 0};
    char key[32];
    uint32_t count = 0;
    for (bool has_space = true; has_space && count < 1000000; count += has_space) {
        (void)snprintf(key, sizeof(key), "%u", count);
        has_space = add(times, key, 0, 10);
    }
    assert_in_range(count, 10000, 20000);
    assert_true(add(times, "7", 0, 10));
    idle_times_report(times, 0, 10 * S, false, report, &reported);
    assert_int_equal(reported.size, 0);
    idle_times_destroy(times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_time_is_reported_after_a_minute_and_at_its_end),
        cmocka_unit_test(six_short_windows_are_reported_together_and_long_ones_at_once),
        cmocka_unit_test(a_clock_change_ends_idle_time),
        cmocka_unit_test(the_number_of_idle_times_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

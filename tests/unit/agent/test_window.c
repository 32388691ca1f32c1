#include "tests/unit/test.h"

#include "agent/binaries.h"
#include "agent/jit_names.h"
#include "agent/kernel_symbols.h"
#include "agent/processes.h"
#include "agent/window.h"
#include "lib/base/clock.h"
#include "lib/profile/profile.h"

struct parts {
    struct binaries *binaries;
    struct processes *processes;
    struct kernel_symbols *kernel_symbols;
    struct jit_budget jit_budget;
    struct window *window;
};

static int create_window(void **state)
{
    static struct parts parts;
    parts.binaries = binaries_create();
    parts.processes =
        processes_create(parts.binaries, &(struct processes_options){.has_targets = true});
    parts.kernel_symbols = kernel_symbols_create();
    parts.jit_budget = (struct jit_budget){.max_bytes = 1 << 20};
    parts.window = window_create(&(struct window_options){.form = WINDOW_FOR_PEOPLE,
                                                          .frequency_hz = 99,
                                                          .event = EVENT_CPU,
                                                          .binaries = parts.binaries,
                                                          .processes = parts.processes,
                                                          .jit_budget = &parts.jit_budget,
                                                          .kernel_symbols = parts.kernel_symbols});
    *state = &parts;
    return 0;
}

static int destroy_window(void **state)
{
    struct parts *parts = *state;
    window_destroy(parts->window);
    kernel_symbols_destroy(parts->kernel_symbols);
    processes_destroy(parts->processes);
    binaries_destroy(parts->binaries);
    return 0;
}

static void its_time_is_that_of_the_sampling(void **state)
{
    struct parts *parts = *state;
    struct window_result result;
    struct err err;
    clock_sleep_ms(20);
    const int64_t before_ns = clock_wall_ns();
    window_begin_time(parts->window);
    clock_sleep_ms(2);
    window_end_time(parts->window);
    const int64_t after_ns = clock_wall_ns();
    clock_sleep_ms(20);
    assert_int_equal(window_take(parts->window, NULL, &result, &err), ERR_NONE);
    assert_true(result.start_ns >= before_ns && result.end_ns <= after_ns);
    assert_int_equal(result.profile->time_ns, result.start_ns);
    assert_int_equal(result.profile->duration_ns, result.end_ns - result.start_ns);
    window_result_fini(&result);

    /* The next goes on from there until it is taken. */
    assert_int_equal(window_take(parts->window, NULL, &result, &err), ERR_NONE);
    assert_true(result.start_ns >= after_ns && result.end_ns >= result.start_ns);
    window_result_fini(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_time_is_that_of_the_sampling, create_window,
                                        destroy_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

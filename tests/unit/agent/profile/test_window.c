#include "tests/unit/test.h"

#include "agent/labels/label_source.h"
#include "agent/labels/process_labels.h"
#include "agent/labels/relabel.h"
#include "agent/process/binaries.h"
#include "agent/process/process.h"
#include "agent/process/process_event.h"
#include "agent/process/process_file.h"
#include "agent/process/processes.h"
#include "agent/process_attachments.h"
#include "agent/profile/window.h"
#include "agent/symbols/jit_symbols.h"
#include "agent/symbols/kernel_symbols.h"
#include "bpf/shared.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct parts {
    struct binaries *binaries;
    struct processes *processes;
    struct kernel_symbols *kernel_symbols;
    struct label_source *label_source;
    struct jit_budget jit_budget;
    struct window *window;
};

static void create_parts(struct parts *parts, enum window_form form,
                         const struct label_settings *settings)
{
    parts->binaries = binaries_create();
    parts->processes = processes_create(
        parts->binaries, &(struct processes_options){.on_program_end = process_attachments_release,
                                                     .on_fork = process_attachments_inherit});
    parts->kernel_symbols = kernel_symbols_create();
    parts->label_source = label_source_create(settings, parts->binaries);
    parts->jit_budget = (struct jit_budget){.max_bytes = 1 << 20};
    parts->window =
        window_create(&(struct window_options){.form = form,
                                               .frequency_hz = 99,
                                               .event = EVENT_CPU,
                                               .binaries = parts->binaries,
                                               .processes = parts->processes,
                                               .jit_budget = &parts->jit_budget,
                                               .label_source = parts->label_source,
                                               .kernel_symbols = parts->kernel_symbols});
}

static int create_window(void **state)
{
    static struct parts parts;
    create_parts(&parts, WINDOW_FOR_PEOPLE, NULL);
    *state = &parts;
    return 0;
}

static int create_for_otlp(void **state)
{
    static struct parts parts;
    create_parts(&parts, WINDOW_FOR_OTLP, NULL);
    *state = &parts;
    return 0;
}

static int destroy_window(void **state)
{
    struct parts *parts = *state;
    window_destroy(parts->window);
    kernel_symbols_destroy(parts->kernel_symbols);
    processes_destroy(parts->processes);
    label_source_destroy(parts->label_source);
    binaries_destroy(parts->binaries);
    return 0;
}

static void the_time_of_a_window_is_that_of_its_sampling(void **state)
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

    /* The next window begins when the first one was taken, and ends when it is taken itself. */
    assert_int_equal(window_take(parts->window, NULL, &result, &err), ERR_NONE);
    assert_true(result.start_ns >= after_ns && result.end_ns >= result.start_ns);
    window_result_fini(&result);

    /* While sampling continues, each window begins at the end of the previous one. */
    const int64_t end_ns = result.end_ns;
    assert_int_equal(window_take(parts->window, NULL, &result, &err), ERR_NONE);
    assert_int_equal(result.start_ns, end_ns);
    window_result_fini(&result);
}

/* ---- quotas of an owner ---- */

enum { NOBODY = 65534, DEPTH = 500, PLACE_BYTES = 16 };
#define FILE_START UINT64_C(0x100000000000)
#define FILE_BYTES (UINT64_C(1) << 40)

static pid_t start_user(uid_t user)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setresuid(user, user, user))
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    for (int i = 0; i < 1000 && process_file_owner((uint32_t)child) != user; i++)
        usleep(10000);
    return child;
}

/* Maps a file that is large enough for all addresses. */
static struct process *find_with_file(struct parts *parts, pid_t process_id)
{
    const struct process_event event = {.kind = PROCESS_EVENT_MAP,
                                        .process_id = (uint32_t)process_id,
                                        .start = FILE_START,
                                        .bytes = FILE_BYTES,
                                        .path = span_text("/bin/sh")};
    (void)processes_find(parts->processes, (uint32_t)process_id, 0);
    processes_apply(parts->processes, &event);
    return processes_find(parts->processes, (uint32_t)process_id, 0);
}

/* Adds sample_count samples, each with DEPTH new addresses of the file, from offset on. */
static void add_addresses(struct parts *parts, struct process *process, uint64_t offset,
                          uint32_t sample_count)
{
    static struct sample_event event;
    event = (struct sample_event){.time_ns = (uint64_t)clock_monotonic_ns(),
                                  .process_id = process->process_id,
                                  .comm = "test",
                                  .user_count = DEPTH};
    for (uint32_t i = 0; i < sample_count; i++) {
        for (uint32_t j = 0; j < DEPTH; j++, offset += PLACE_BYTES)
            event.addresses[j] = FILE_START + offset;
        window_add(parts->window, process, &event);
    }
}

static uint32_t count_addresses(const struct profile *profile, uint64_t offset, uint64_t bytes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->location_count; i++)
        count += profile->locations[i].address - offset < bytes;
    return count;
}

static bool has_string(const struct profile *profile, const char *text)
{
    bool is_found = false;
    for (uint32_t i = 0; i < profile->string_count; i++)
        is_found |= span_equal_text(profile->strings[i], text);
    return is_found;
}

/* Twelve processes of one user with 50,000 addresses each, and then one process of root. */
static void addresses_of_one_user_leave_space_for_others(void **state)
{
    struct parts *parts = *state;
    enum { COUNT = 12, SAMPLES = 100, OTHER_SAMPLES = 40, BATCH_BYTES = 8 << 20 };
    const uint64_t part = UINT64_C(1) << 32, others = COUNT * part;
    struct window_result result;
    struct err err;
    pid_t children[COUNT];
    buf_auto batch;
    if (getuid() != 0)
        skip();
    for (uint64_t i = 0; i < COUNT; i++) {
        children[i] = start_user(NOBODY);
        add_addresses(parts, find_with_file(parts, children[i]), i * part, SAMPLES);
    }
    add_addresses(parts, find_with_file(parts, getpid()), others, OTHER_SAMPLES);
    assert_int_equal(window_take(parts->window, NULL, &result, &err), ERR_NONE);
    assert_int_equal(result.samples, COUNT * SAMPLES + OTHER_SAMPLES);
    /* Half of 6 MiB at 20 bytes per address. */
    assert_in_range(count_addresses(result.profile, 0, others), 140000, 160000);
    assert_int_equal(count_addresses(result.profile, others, part), OTHER_SAMPLES * DEPTH);
    assert_true(has_string(result.profile, WINDOW_NAME_LEFT_OUT));
    buf_init(&batch, BATCH_BYTES);
    assert_int_equal(
        otlp_encode(result.profile, result.resources, result.resource_count, &batch, &err),
        ERR_NONE);
    window_result_fini(&result);
    for (int i = 0; i < COUNT; i++) {
        kill(children[i], SIGKILL);
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    }
}

/* ---- idle time ---- */

/* Takes the window as the last one, which contains all idle time, and checks its resources.
 * is_idle: each was idle during the whole window. */
static void take_and_expect(struct parts *parts, uint32_t resource_count, bool is_idle)
{
    struct window_result result;
    struct err err;
    clock_sleep_ms(1);
    window_end_time(parts->window);
    assert_int_equal(window_take(parts->window, NULL, &result, &err), ERR_NONE);
    assert_int_equal(result.resource_count, resource_count);
    for (uint32_t i = 0; i < resource_count; i++) {
        const struct otlp_resource *resource = &result.resources[i];
        const int64_t idle_ns = is_idle ? result.end_ns - result.start_ns : 0;
        assert_int_equal(resource->idle_duration_ns, idle_ns);
        assert_int_equal(resource->idle_time_ns, is_idle ? result.start_ns : 0);
        assert_int_equal(resource->idle_types, 0);
    }
    window_result_fini(&result);
}

/* A process is idle from its first sample until it ends or executes another program. */
static void a_process_that_was_sampled_is_idle_until_it_ends(void **state)
{
    struct parts *parts = *state;
    if (getuid() != 0)
        skip();
    const pid_t child = start_user(NOBODY);
    struct process *process = find_with_file(parts, child);
    take_and_expect(parts, 0, false);
    add_addresses(parts, process, 0, 1);
    take_and_expect(parts, 1, false);
    take_and_expect(parts, 1, true);
    take_and_expect(parts, 1, true);

    const struct process_event exec = {.kind = PROCESS_EVENT_NAME,
                                       .process_id = (uint32_t)child,
                                       .thread_id = (uint32_t)child,
                                       .name = span_text("other"),
                                       .is_exec = true};
    processes_apply(parts->processes, &exec);
    take_and_expect(parts, 0, false);
    add_addresses(parts, find_with_file(parts, child), 0, 1);
    take_and_expect(parts, 1, false);
    take_and_expect(parts, 1, true);

    /* The process has ended, and the event of its end was lost. */
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    take_and_expect(parts, 0, false);
}

/* ---- samples that the kernel counted ---- */

static void add_with_key(struct parts *parts, uint64_t key)
{
    static struct sample_event event;
    event = (struct sample_event){.key = key, .comm = "test"};
    window_add(parts->window, processes_find(parts->processes, (uint32_t)getpid(), 0), &event);
}

static void samples_dropped_by_rules_are_counted(void **state)
{
    (void)state;
    enum { FIRST = 7, UNKNOWN = 8 };
    static const char drop_all[] = "- action: drop\n  regex: ''";
    arena_auto arena = arena_create();
    struct relabel_rules *rules;
    struct err err;
    struct parts parts;
    const struct sample_tally five = {.samples = 5, .amount = 5};
    assert_int_equal(relabel_read(span_text(drop_all), arena, &rules, &err), ERR_NONE);
    create_parts(&parts, WINDOW_FOR_OTLP, &(struct label_settings){.rules = rules});
    add_with_key(&parts, FIRST);
    assert_int_equal(window_unwanted(parts.window), 1);
    window_add_tally(parts.window, UNKNOWN, &five);
    assert_int_equal(window_unwanted(parts.window), 1);
    window_add_tally(parts.window, FIRST, &five);
    assert_int_equal(window_unwanted(parts.window), 6);
    void *all = &parts;
    destroy_window(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_time_of_a_window_is_that_of_its_sampling, create_window,
                                        destroy_window),
        cmocka_unit_test_setup_teardown(addresses_of_one_user_leave_space_for_others,
                                        create_for_otlp, destroy_window),
        cmocka_unit_test_setup_teardown(a_process_that_was_sampled_is_idle_until_it_ends,
                                        create_for_otlp, destroy_window),
        cmocka_unit_test(samples_dropped_by_rules_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

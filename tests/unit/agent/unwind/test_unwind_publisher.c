#include "tests/unit/test.h"

#include "agent/interpreter/interpreter.h"
#include "agent/process/binaries.h"
#include "agent/process/process.h"
#include "agent/process/processes.h"
#include "agent/process_attachments.h"
#include "agent/unwind/unwind_maps.h"
#include "agent/unwind/unwind_publisher.h"
#include "agent/unwind/user_unwinder.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_child(void)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return child;
}

/* Ends a child that stays a zombie until it is waited for. */
static void end_child(pid_t child)
{
    siginfo_t ignored;
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &ignored, WEXITED | WNOWAIT);
}

static struct process *find(struct processes *processes, pid_t child)
{
    return processes_find(processes, (uint32_t)child, 0);
}

struct host {
    struct processes *processes;
    struct binaries *binaries;
    struct interpreters *interpreters;
    struct user_unwinder *unwinder;
    struct unwind_publisher *publisher;
};

static void open_host(struct host *host)
{
    const struct processes_options of_processes = {.has_targets = true,
                                                   .on_program_end = process_attachments_release,
                                                   .on_fork = process_attachments_inherit};
    struct unwind_memory memory;
    host->binaries = binaries_create();
    host->processes = processes_create(host->binaries, &of_processes);
    host->interpreters =
        interpreters_create(&(struct interpreters_options){.binaries = host->binaries});
    host->unwinder = user_unwinder_create(NULL);
    user_unwinder_memory(host->unwinder, &memory);
    host->publisher = unwind_publisher_create(NULL, &memory, host->binaries, host->interpreters);
}

static void close_host(struct host *host)
{
    processes_destroy(host->processes);
    interpreters_destroy(host->interpreters);
    unwind_publisher_destroy(host->publisher);
    user_unwinder_destroy(host->unwinder);
    binaries_destroy(host->binaries);
}

static uint32_t count_tables(const struct host *host)
{
    struct unwind_publisher_counts counts;
    unwind_publisher_count(host->publisher, &counts);
    return counts.tables;
}

static void publish_all(struct host *host, pid_t child)
{
    unwind_publisher_enqueue(host->publisher, find(host->processes, child));
    while (unwind_publisher_publish(host->publisher))
        ;
}

static bool return_flag(void *context)
{
    return *(const bool *)context;
}

static void no_table_is_built_shortly_after_a_stop(void **state)
{
    (void)state;
    struct host host;
    bool is_ending = true;
    const pid_t child = start_child();
    open_host(&host);
    unwind_publisher_set_host(host.publisher, &(struct table_builder_host){.is_ending = return_flag,
                                                                           .context = &is_ending});
    (void)unwind_publisher_publish(host.publisher);
    processes_make_target(host.processes, (uint32_t)child);
    unwind_publisher_enqueue(host.publisher, find(host.processes, child));
    unwind_publisher_publish_process(host.publisher, find(host.processes, child));
    assert_true(unwind_publisher_publish(host.publisher));
    const uint32_t before = count_tables(&host);
    assert_int_equal(before, 1);
    usleep(600000);
    publish_all(&host, child);
    assert_int_equal(count_tables(&host), before);
    is_ending = false;
    publish_all(&host, child);
    assert_true(count_tables(&host) > before);
    unwind_publisher_forget(host.publisher, find(host.processes, child));
    close_host(&host);
    end_child(child);
    while (wait(NULL) > 0)
        ;
}

/* Programs end faster than their mappings are read. */
static void an_ended_process_does_not_delay_tables_of_others(void **state)
{
    (void)state;
    const pid_t ended = start_child(), running = start_child();
    struct host host;
    open_host(&host);
    processes_make_target(host.processes, (uint32_t)ended);
    processes_make_target(host.processes, (uint32_t)running);
    end_child(ended);
    unwind_publisher_enqueue(host.publisher, find(host.processes, running));
    unwind_publisher_enqueue(host.publisher, find(host.processes, ended));
    unwind_publisher_publish_process(host.publisher, find(host.processes, ended));
    while (unwind_publisher_publish(host.publisher))
        ;
    /* At least the program and the C library. */
    assert_true(count_tables(&host) >= 2);
    unwind_publisher_forget(host.publisher, find(host.processes, ended));
    unwind_publisher_forget(host.publisher, find(host.processes, running));
    close_host(&host);
    end_child(running);
    while (wait(NULL) > 0)
        ;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_table_is_built_shortly_after_a_stop),
        cmocka_unit_test(an_ended_process_does_not_delay_tables_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

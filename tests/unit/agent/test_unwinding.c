#include "tests/unit/test.h"

#include "agent/binaries.h"
#include "agent/interpreter.h"
#include "agent/processes.h"
#include "agent/stack_walk.h"
#include "agent/unwind_space.h"
#include "agent/unwinding.h"

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

/* It stays a process without files until somebody waits for it. */
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

/* As when programs end faster than what they mapped is looked at. */
static void a_process_that_has_ended_keeps_no_table_from_the_next_one(void **state)
{
    (void)state;
    const pid_t ended = start_child(), running = start_child();
    const struct processes_options of_processes = {.has_targets = true};
    struct binaries *binaries = binaries_create();
    struct processes *processes = processes_create(binaries, &of_processes);
    struct interpreters *interpreters =
        interpreters_create(&(struct interpreters_options){.binaries = binaries});
    struct stack_walk *walk = stack_walk_create(NULL);
    struct unwind_memory memory;
    struct unwinding_counts counts;
    stack_walk_memory(walk, &memory);
    struct unwinding *unwinding = unwinding_create(NULL, &memory, binaries, interpreters);
    processes_make_target(processes, (uint32_t)ended);
    processes_make_target(processes, (uint32_t)running);
    end_child(ended);
    unwinding_note(unwinding, find(processes, running));
    unwinding_note(unwinding, find(processes, ended));
    unwinding_publish_process(unwinding, find(processes, ended));
    while (unwinding_publish(unwinding))
        ;
    unwinding_count(unwinding, &counts);
    /* The program and the C library at least. */
    assert_true(counts.tables >= 2);
    unwinding_forget(unwinding, find(processes, ended));
    unwinding_forget(unwinding, find(processes, running));
    processes_destroy(processes);
    interpreters_destroy(interpreters);
    unwinding_destroy(unwinding);
    stack_walk_destroy(walk);
    binaries_destroy(binaries);
    end_child(running);
    while (wait(NULL) > 0)
        ;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_has_ended_keeps_no_table_from_the_next_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Detection of interpreters among mapped files. */
#include "tests/unit/test.h"

#include "agent/interpreter/interpreter.h"
#include "agent/process/binaries.h"
#include "agent/process/process.h"
#include "agent/process/process_event.h"
#include "agent/process/processes.h"
#include "agent/process_attachments.h"
#include "lib/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void copy_interpreter(const char *path)
{
    char command[256];
    snprintf(command, sizeof(command), "cp -L /usr/bin/python3 %s", path);
    assert_int_equal(system(command), 0);
}

static struct process *map(struct processes *processes, const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    const struct process_event event = {.kind = PROCESS_EVENT_MAP,
                                        .process_id = (uint32_t)getpid(),
                                        .start = 0x10000,
                                        .bytes = 0x4000,
                                        .inode = status.st_ino,
                                        .path = span_text(path)};
    struct process *process = processes_find(processes, (uint32_t)getpid(), 0);
    processes_apply(processes, &event);
    return process;
}

static struct process *add_child_that_has_ended(struct processes *processes)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    const struct process_event event = {.kind = PROCESS_EVENT_FORK,
                                        .process_id = (uint32_t)child,
                                        .thread_id = (uint32_t)child,
                                        .parent_id = (uint32_t)getpid()};
    processes_apply(processes, &event);
    return processes_find(processes, (uint32_t)child, 0);
}

struct program {
    struct binaries *binaries;
    struct processes *processes;
    struct interpreters *interpreters;
    struct process *process; /* this process, which has path mapped */
    char folder[64];
    char path[128]; /* a copy of an interpreter */
};

static void set_up(struct program *program)
{
    const struct processes_options options = {.on_program_end = process_attachments_release,
                                              .on_fork = process_attachments_inherit};
    if (access("/usr/bin/python3", R_OK))
        skip();
    *program = (struct program){.folder = "/tmp/perfolio-interpreter-XXXXXX"};
    program->binaries = binaries_create();
    program->processes = processes_create(program->binaries, &options);
    program->interpreters =
        interpreters_create(&(struct interpreters_options){.binaries = program->binaries});
    assert_non_null(mkdtemp(program->folder));
    snprintf(program->path, sizeof(program->path), "%s/python3", program->folder);
    copy_interpreter(program->path);
    program->process = map(program->processes, program->path);
}

static void tear_down(struct program *program)
{
    assert_int_equal(unlink(program->path), 0);
    assert_int_equal(rmdir(program->folder), 0);
    processes_destroy(program->processes);
    interpreters_destroy(program->interpreters);
    binaries_destroy(program->binaries);
}

/* Each publication looks at each mapping, so a file that cannot be opened needs a pause. */
static void a_file_that_cannot_be_opened_is_retried_after_a_pause(void **state)
{
    (void)state;
    struct program program;
    set_up(&program);
    assert_int_equal(unlink(program.path), 0);
    const int64_t before_ns = clock_monotonic_ns();
    interpreters_note(program.interpreters, program.process);
    assert_null(program.process->interpreter);
    assert_true(program.process->unopened_ns >= before_ns + program.process->unopened_pause_ns);
    copy_interpreter(program.path);
    program.process->unopened_ns = INT64_MAX; /* far in the future, however long the copy took */
    interpreters_note(program.interpreters, program.process);
    assert_null(program.process->interpreter);
    program.process->unopened_ns = clock_monotonic_ns();
    interpreters_note(program.interpreters, program.process);
    assert_non_null(program.process->interpreter);
    tear_down(&program);
}

static void a_file_that_one_process_cannot_open_is_opened_by_another_at_once(void **state)
{
    (void)state;
    struct program program;
    set_up(&program);
    struct process *child = add_child_that_has_ended(program.processes);
    interpreters_note(program.interpreters, child);
    assert_null(child->interpreter);
    interpreters_note(program.interpreters, program.process);
    assert_non_null(program.process->interpreter);
    tear_down(&program);
}

/* Otherwise a program that starts a child for each step would cause an attempt per child. */
static void a_child_inherits_the_pause_of_its_parent(void **state)
{
    (void)state;
    struct program program;
    set_up(&program);
    assert_int_equal(unlink(program.path), 0);
    interpreters_note(program.interpreters, program.process);
    struct process *child = add_child_that_has_ended(program.processes);
    assert_true(child->unopened_ns > 0);
    assert_int_equal(child->unopened_ns, program.process->unopened_ns);
    copy_interpreter(program.path);
    tear_down(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_cannot_be_opened_is_retried_after_a_pause),
        cmocka_unit_test(a_file_that_one_process_cannot_open_is_opened_by_another_at_once),
        cmocka_unit_test(a_child_inherits_the_pause_of_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

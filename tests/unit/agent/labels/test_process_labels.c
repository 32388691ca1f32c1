#include "tests/unit/test.h"

#include "agent/labels/label_source.h"
#include "agent/labels/process_labels.h"
#include "agent/process/binaries.h"
#include "agent/process/process.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process during execve, when its first sample arrives. */
static struct process early_process(pid_t number)
{
    return (struct process){.process_id = (uint32_t)number,
                            .shown_id = (uint32_t)number,
                            .program = BINARY_NONE,
                            .name = "cut-by-the-kern"};
}

static const char *value_of(const struct process_labels *labels, const char *name)
{
    static char value[PROCESS_LABEL_MAX_BYTES + 1];
    size_t count;
    const struct batch_text_label *all = process_labels_get(labels, &count);
    for (size_t i = 0; i < count; i++) {
        if (span_equal_text(all[i].name, name)) {
            snprintf(value, sizeof(value), "%.*s", SPAN_PRINT(all[i].value));
            return value;
        }
    }
    return "";
}

static void a_program_that_is_not_mapped_yet_has_its_name(void **state)
{
    (void)state;
    struct binaries *binaries = binaries_create();
    struct label_source *source = label_source_create(NULL, binaries);
    struct process process = early_process(getpid());
    struct process_labels *labels = NULL;
    process_labels_renew(&labels, source, &process);
    char path[4096] = "";
    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    assert_string_equal(value_of(labels, "process.executable.name"), strrchr(path, '/') + 1);
    const struct process_labels *first = labels;
    process_labels_renew(&labels, source, &process);
    assert_ptr_equal(labels, first);
    /* The build id is known once the program is mapped. */
    const struct binary_source mapped = {.process_id = process.process_id,
                                         .path = span_text(path),
                                         .build_id = SPAN_LITERAL("\x12\x34\x56\x78")};
    process.program = binaries_take(binaries, &mapped);
    process_labels_renew(&labels, source, &process);
    assert_string_equal(value_of(labels, "process.executable.build_id.gnu"), "12345678");
    /* Labels of an ended process are kept. */
    process.program = BINARY_NONE;
    process.ended_ns = 1;
    first = labels;
    process_labels_renew(&labels, source, &process);
    assert_ptr_equal(labels, first);
    process_labels_destroy(labels);
    label_source_destroy(source);
    binaries_destroy(binaries);
}

/* Starts a child without environment variables, which are set when the test writes to the pipe, as
 * a program has none before the end of its execve. */
static pid_t start_child(int *ret_signal_fd)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        char *const none[] = {NULL};
        (void)dup2(pipes[0], STDIN_FILENO);
        close(pipes[1]);
        (void)execle("/bin/sh", "sh", "-c", "read x && LOAD=late exec sleep 600", NULL, none);
        _exit(1);
    }
    close(pipes[0]);
    *ret_signal_fd = pipes[1];
    return child;
}

/* Waits until the environment is that of the shell and not of the forked process. */
static void wait_for_shell(pid_t child)
{
    char path[64], name[4096];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)child);
    for (int i = 0; i < 6000; i++) {
        FILE *file = fopen(path, "re");
        const size_t size = file ? fread(name, 1, sizeof(name), file) : 1;
        if (file)
            fclose(file);
        if (size == 0)
            return;
        poll(NULL, 0, 10);
    }
    fail_msg("the shell has variables");
}

static void variables_that_come_at_the_end_of_execve_are_labels(void **state)
{
    (void)state;
    struct span name = SPAN_LITERAL("LOAD");
    const struct label_settings settings = {.environment = &name, .environment_count = 1};
    struct binaries *binaries = binaries_create();
    struct label_source *source = label_source_create(&settings, binaries);
    int signal_fd;
    const pid_t child = start_child(&signal_fd);
    wait_for_shell(child);
    const struct process process = early_process(child);
    struct process_labels *labels = NULL;
    process_labels_renew(&labels, source, &process);
    assert_string_equal(value_of(labels, "process.environment_variable.LOAD"), "");
    assert_int_equal(write(signal_fd, "x\n", 2), 2);
    close(signal_fd);
    for (int i = 0; i < 600 && !*value_of(labels, "process.environment_variable.LOAD"); i++) {
        poll(NULL, 0, 100);
        process_labels_renew(&labels, source, &process);
    }
    assert_string_equal(value_of(labels, "process.environment_variable.LOAD"), "late");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    process_labels_destroy(labels);
    label_source_destroy(source);
    binaries_destroy(binaries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_is_not_mapped_yet_has_its_name),
        cmocka_unit_test(variables_that_come_at_the_end_of_execve_are_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

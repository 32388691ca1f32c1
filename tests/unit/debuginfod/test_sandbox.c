#include "tests/unit/test.h"

#include "debuginfod/sandbox.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/sanitizers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct sandbox_limits limits = {
    .memory_bytes = 256 << 20, .output_bytes = 1 << 20, .cpu_s = 2};

/* Runs the action in a child in the sandbox; returns the wait status of the child. */
static int status_of(int (*action)(void))
{
    if (IS_SANITIZED) /* the limit of address space is too small for shadow memory */
        skip();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *warning = NULL;
        struct err err;
        if (sandbox_enter(&limits, &warning, &err))
            _exit(99);
        _exit(action());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void assert_killed(int (*action)(void))
{
    int status = status_of(action);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

static int open_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static int run_program(void)
{
    char *const arguments[] = {(char[]){"true"}, NULL};
    return execve("/bin/true", arguments, (char *const[]){NULL});
}

static int start_process(void)
{
    return fork() >= 0;
}

static int signal_parent(void)
{
    return kill(getppid(), 0);
}

static int map_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
}

static int change_name(void)
{
    return rename("/tmp/a", "/tmp/b");
}

static void network_programs_and_other_processes_are_inaccessible(void **state)
{
    (void)state;
    assert_killed(open_socket);
    assert_killed(run_program);
    assert_killed(start_process);
    assert_killed(signal_parent);
    assert_killed(change_name);
}

static void memory_never_becomes_code(void **state)
{
    (void)state;
    assert_killed(map_code);
}

static int open_files(void)
{
    static const char *const paths[] = {"/etc/passwd", "/proc/self/mem", "/dev/null", "/tmp"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (open(paths[i], O_RDONLY) >= 0 || errno != EACCES)
            return 1;
    }
    return open("/tmp/perfolio-sandbox", O_RDWR | O_CREAT, 0600) >= 0 || errno != EACCES;
}

static void opening_a_file_fails_with_an_error(void **state)
{
    (void)state;
    int status = status_of(open_files);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int work(void)
{
    char *memory = mem_alloc(64 << 20, 1);
    memset(memory, 1, 64 << 20);
    int sum = memory[1 << 20];
    mem_free(memory);
    return sum == 1 ? 0 : 1;
}

static void memory_can_be_used_up_to_its_limit(void **state)
{
    (void)state;
    int status = status_of(work);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int take_too_much(void)
{
    close(STDERR_FILENO);
    return mem_alloc(1 << 30, 1) == NULL;
}

static void more_memory_ends_only_the_process(void **state)
{
    (void)state;
    int status = status_of(take_too_much);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static int compute(void)
{
    for (volatile bool goes_on = true; goes_on;)
        ;
    return 0;
}

/* SIGKILL could also come from elsewhere. */
static void more_cpu_time_ends_the_process_with_its_own_signal(void **state)
{
    (void)state;
    int status = status_of(compute);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGXCPU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(network_programs_and_other_processes_are_inaccessible),
        cmocka_unit_test(memory_never_becomes_code),
        cmocka_unit_test(opening_a_file_fails_with_an_error),
        cmocka_unit_test(memory_can_be_used_up_to_its_limit),
        cmocka_unit_test(more_memory_ends_only_the_process),
        cmocka_unit_test(more_cpu_time_ends_the_process_with_its_own_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

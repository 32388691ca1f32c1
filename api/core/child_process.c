#include "api/core/child_process.h"

#include "api/core/os_user.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static enum err_code connect_streams(const struct child_process_options *options, struct err *err)
{
    int input =
        options->stdin_fd >= 0 ? options->stdin_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Includes descriptors that this process inherited. Kernels before 5.11 lack the flag, and
     * descriptors that we open have it anyway. */
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    int output = options->stdout_fd >= 0 ? options->stdout_fd : STDERR_FILENO;
    if (input < 0 || (options->log_fd > 0 && dup2(options->log_fd, STDERR_FILENO) < 0) ||
        dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
        return err_set_errno(err, ERR_IO, "cannot connect the standard streams");
    for (int i = 0; i < options->kept_fd_count; i++)
        if (fcntl(options->kept_fds[i], F_SETFD, 0) != 0)
            return err_set_errno(err, ERR_IO, "cannot pass on descriptor %d", options->kept_fds[i]);
    return ERR_NONE;
}

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* execve declares its arguments without const for historical reasons, but does not change them. */
static char *const *unconst(const char *const *texts)
{
    union {
        const char *const *read_only;
        char *const *plain;
    } same = {.read_only = texts};
    return same.plain;
}

/* Runs in the child, up to the exec, which returns only when it fails. */
static enum err_code become_program(const struct child_process_options *options, pid_t parent,
                                    struct err *err)
{
    /* Open it before the change of user: /proc/self/exe may be in a folder that the user cannot
     * enter. */
    int self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    setsid();
    umask(077);
    reset_signals();
    /* The current folder may be one that the user cannot enter. */
    if (chdir("/") != 0)
        return err_set_errno(err, ERR_IO, "chdir");
    enum err_code code = connect_streams(options, err);
    if (code)
        return code;
    code = os_user_become(options->account, err);
    if (code)
        return code;
    if (prctl(PR_SET_PDEATHSIG, options->death_signal) != 0)
        return err_set_errno(err, ERR_INTERNAL, "prctl(PR_SET_PDEATHSIG)");
    if (getppid() != parent)
        return err_set(err, ERR_CANCELLED, "the supervisor has ended");
    char *const *arguments = unconst(options->arguments);
    char *const *environment = options->environment ? unconst(options->environment) : environ;
    if (options->program)
        execve(options->program, arguments, environment);
    else if (self_fd >= 0)
        fexecve(self_fd, arguments, environment);
    return err_set_errno(err, ERR_IO, "cannot run %s",
                         options->program ? options->program : options->arguments[0]);
}

enum err_code child_process_start(const struct child_process_options *options, pid_t *ret_pid,
                                  struct err *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_IO, "cannot make a pipe");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        struct err child_err;
        become_program(options, parent, &child_err);
        ssize_t written = write(report[1], &child_err, sizeof(child_err));
        _exit(written == (ssize_t)sizeof(child_err) ? 126 : 127);
    }
    int fork_errno = errno;
    close(report[1]);
    /* The child's end closes when it executes its program; then the read returns nothing. */
    struct err child_err;
    ssize_t got = pid > 0 ? read(report[0], &child_err, sizeof(child_err)) : 0;
    close(report[0]);
    errno = fork_errno;
    if (pid < 0)
        return err_set_errno(err, ERR_INTERNAL, "cannot make a process");
    if (got == (ssize_t)sizeof(child_err)) {
        waitpid(pid, NULL, 0);
        *err = child_err;
        return err->code;
    }
    *ret_pid = pid;
    return ERR_NONE;
}

static enum err_code wait_with(pid_t pid, int flags, bool *ret_is_done, bool *ret_is_success,
                               struct err *err)
{
    int status;
    pid_t result;
    do
        result = waitpid(pid, &status, flags);
    while (result < 0 && errno == EINTR);
    if (result < 0)
        return err_set_errno(err, ERR_INTERNAL, "cannot wait for process %d", (int)pid);
    *ret_is_done = result == pid;
    if (*ret_is_done)
        *ret_is_success = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return ERR_NONE;
}

enum err_code child_process_wait(pid_t pid, bool *ret_is_success, struct err *err)
{
    bool is_done;
    return wait_with(pid, 0, &is_done, ret_is_success, err);
}

enum err_code child_process_wait_ms(pid_t pid, int64_t duration_ms, bool *ret_is_success,
                                    struct err *err)
{
    int64_t deadline_ns = clock_monotonic_ns() + duration_ms * CLOCK_NS_PER_MS;
    for (;;) {
        bool is_done;
        enum err_code code = wait_with(pid, WNOHANG, &is_done, ret_is_success, err);
        if (code || is_done)
            return code;
        if (clock_monotonic_ns() >= deadline_ns)
            return err_set(err, ERR_TIMEOUT, "process %d has not ended in %lld ms", (int)pid,
                           (long long)duration_ms);
        clock_sleep_ms(5);
    }
}

enum err_code child_process_run(const struct child_process_options *options, struct err *err)
{
    pid_t pid;
    bool is_success = false;
    enum err_code code = child_process_start(options, &pid, err);
    if (code)
        return code;
    code = child_process_wait(pid, &is_success, err);
    if (code)
        return code;
    if (!is_success)
        return err_set(err, ERR_INTERNAL, "%s has failed; see its messages above",
                       options->program ? options->program : options->arguments[1]);
    return ERR_NONE;
}

bool child_process_is_stop_wanted(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT);
}

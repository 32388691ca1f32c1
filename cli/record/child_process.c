#include "cli/record/child_process.h"

#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Restores the signal actions that main changed. */
static void reset_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGBUS, SIGPIPE};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 &&
            (action.sa_handler != SIG_IGN || numbers[i] == SIGPIPE))
            signal(numbers[i], SIG_DFL);
    }
}

/* Runs in the child: waits until the parent closes the other end of start_fd; a byte means that the
 * command must not start. */
static void run_child(char **arguments, int start_fd, int failure_fd)
{
    char byte;
    ssize_t got;
    do
        got = read(start_fd, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 0)
        _exit(0);
    reset_signals();
    execvp(arguments[0], arguments);
    const int error = errno;
    if (write(failure_fd, &error, sizeof(error)) < 0)
        _exit(126);
    _exit(127);
}

enum err_code child_process_prepare(char **arguments, struct child_process *ret_child,
                                    struct err *err)
{
    int start[2], failure[2];
    if (pipe2(start, O_CLOEXEC))
        return err_set_errno(err, ERR_IO, "creating a pipe");
    if (pipe2(failure, O_CLOEXEC)) {
        err_set_errno(err, ERR_IO, "creating a pipe");
        os_close(start[0]);
        os_close(start[1]);
        return err->code;
    }
    const pid_t process_id = fork();
    if (process_id == 0) {
        os_close(start[1]);
        run_child(arguments, start[0], failure[1]);
    }
    os_close(start[0]);
    os_close(failure[1]);
    *ret_child = (struct child_process){
        .process_id = process_id, .start_fd = start[1], .failure_fd = failure[0]};
    if (process_id > 0)
        return ERR_NONE;
    ret_child->process_id = 0;
    err_set_errno(err, ERR_IO, "starting a process");
    child_process_close(ret_child);
    return err->code;
}

enum err_code child_process_begin(struct child_process *child, const char *name, struct err *err)
{
    int error = 0;
    os_close(child->start_fd);
    child->start_fd = -1;
    ssize_t got;
    do
        got = read(child->failure_fd, &error, sizeof(error));
    while (got < 0 && errno == EINTR);
    if (got != sizeof(error))
        return ERR_NONE;
    errno = error;
    return err_set_errno(err, error == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s", name);
}

bool child_process_has_ended(struct child_process *child)
{
    if (!child->has_ended && waitpid(child->process_id, &child->status, WNOHANG) != 0)
        child->has_ended = true;
    return child->has_ended;
}

int child_process_exit_status(const struct child_process *child)
{
    if (!child->has_ended)
        return 0;
    return WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status) : WEXITSTATUS(child->status);
}

void child_process_close(struct child_process *child)
{
    if (child->process_id == 0 && child->start_fd <= 0)
        return;
    if (child->start_fd >= 0) {
        /* A byte makes the child exit without starting the command. */
        if (write(child->start_fd, "", 1) == 1 && child->process_id > 0)
            (void)waitpid(child->process_id, NULL, 0);
        os_close(child->start_fd);
    }
    if (child->failure_fd >= 0)
        os_close(child->failure_fd);
    *child = (struct child_process){.start_fd = -1, .failure_fd = -1};
}

/*
 * child_process: child processes of the supervisor, which has one thread.
 *
 * A child works in "/" and gets its own session (a terminal's Ctrl-C reaches only the supervisor,
 * which stops the others in order), the default signal handling, and a signal when the supervisor
 * dies. That signal is requested after the change of user, because the kernel forgets it at that
 * change.
 */
#ifndef API_CORE_CHILD_PROCESS_H
#define API_CORE_CHILD_PROCESS_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct os_user;

enum { CHILD_PROCESS_MAX_KEPT_FDS = 16 };

struct child_process_options {
    const char *program;            /* path; NULL runs this executable again */
    const char *const *arguments;   /* with the program's name, NULL-terminated */
    const char *const *environment; /* NULL: the environment of this process */
    const struct os_user *account;  /* the user as whom the child runs */
    int death_signal;               /* the signal that the child gets when the supervisor dies */
    int log_fd;                     /* the child's standard error; 0: that of this process */
    int stdin_fd;                   /* -1: /dev/null */
    int stdout_fd;                  /* -1: the standard error of this process */
    const int *kept_fds;            /* stay open under their numbers; all others are closed */
    int kept_fd_count;
};

/* Starts a child and returns once it executes its program, without waiting for its end. If the
 * program cannot be executed, the error states why and there is no child. */
enum err_code child_process_start(const struct child_process_options *options, pid_t *ret_pid,
                                  struct err *err) MUST_USE;

/* Waits for the end of pid. *ret_is_success: exit status 0. */
enum err_code child_process_wait(pid_t pid, bool *ret_is_success, struct err *err) MUST_USE;
/* As child_process_wait for at most duration_ms. Errors: ERR_TIMEOUT (pid still runs, and can be
 * waited for again). */
enum err_code child_process_wait_ms(pid_t pid, int64_t duration_ms, bool *ret_is_success,
                                    struct err *err) MUST_USE;

/* child_process_start and child_process_wait. Errors: ERR_INTERNAL (the exit status is not 0). */
enum err_code child_process_run(const struct child_process_options *options,
                                struct err *err) MUST_USE;

/* Whether SIGTERM or SIGINT is pending; the supervisor blocks both. For long operations, which end
 * early then. */
bool child_process_is_stop_wanted(void);

#endif

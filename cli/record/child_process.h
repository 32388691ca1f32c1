/*
 * child_process: a process that waits until child_process_begin and then executes a command, so
 * that the first instructions of the command are recorded. Threads: one.
 */
#ifndef CLI_RECORD_CHILD_PROCESS_H
#define CLI_RECORD_CHILD_PROCESS_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <sys/types.h>

struct child_process {
    pid_t process_id; /* 0: none */
    int start_fd;     /* closing it starts the command */
    int failure_fd;   /* reports errno of a failed exec */
    bool has_ended;
    int status; /* as of wait(2), once it has ended */
};

/* Forks the process, which waits. arguments: as for execvp(3). Errors: ERR_IO. */
enum err_code child_process_prepare(char **arguments, struct child_process *ret_child,
                                    struct err *err) MUST_USE;
/* Lets the process execute its command, and waits until it has. name names the command in messages.
 * Errors: ERR_NOT_FOUND, ERR_IO (the command cannot be executed). */
enum err_code child_process_begin(struct child_process *child, const char *name,
                                  struct err *err) MUST_USE;
/* Returns true if the command has ended. Does not block. */
bool child_process_has_ended(struct child_process *child);
/* Exit status in the form of a shell: 128 plus the signal number after a signal. 0: still running.
 */
int child_process_exit_status(const struct child_process *child);
/* Ends a command that has not begun; a running one continues. Safe to repeat. */
void child_process_close(struct child_process *child);

#endif

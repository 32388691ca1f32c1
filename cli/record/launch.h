/*
 * launch: a command that is made ready, waits, and begins when it is told to, so that whoever
 * watches it sees its first step. Threads: one.
 */
#ifndef CLI_RECORD_LAUNCH_H
#define CLI_RECORD_LAUNCH_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct launch {
    pid_t process_id; /* 0: none */
    int go_fd;        /* closing it lets the command begin */
    int failure_fd;   /* says why it could not */
    bool has_ended;
    int status; /* as of wait(2), once it has ended */
};

/* arguments as execvp(3) wants them. Handles: ERR_IO. */
enum err_code launch_prepare(char **arguments, struct launch *ret_launch, struct err *err) MUST_USE;
/* Handles: ERR_NOT_FOUND, ERR_IO (it cannot be executed). */
enum err_code launch_begin(struct launch *launch, const char *name, struct err *err) MUST_USE;
/* Has it ended? Does not wait. */
bool launch_has_ended(struct launch *launch);
/* As a shell says it: its exit status, or 128 and the signal that ended it. 0: it has not ended. */
int launch_exit_status(const struct launch *launch);
/* One that never began ends; one that runs is left alone. Safe to repeat. */
void launch_close(struct launch *launch);

#endif

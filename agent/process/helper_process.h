/*
 * helper_process: calls functions that may never return in another process.
 *
 * Reading the memory of a process, or opening a file by its path, can wait for a FUSE file system
 * whose server, a program of any user, does not respond; then not even SIGKILL ends the reader. So
 * a privileged agent makes such calls in a helper process. If the helper is blocked for a few
 * seconds, it is abandoned and replaced, and nothing is read for processes of the same owner
 * (process_file.h) for ten minutes.
 *
 * The helper is a fork that shares a socket and a buffer with its parent and ends with it. If the
 * agent has no privileges, the function is called directly: a user can then block only a command of
 * their own. Threads: any; one call at a time.
 */
#ifndef AGENT_PROCESS_HELPER_PROCESS_H
#define AGENT_PROCESS_HELPER_PROCESS_H

#include <stddef.h>
#include <stdint.h>

enum { HELPER_PROCESS_BYTES = 256 << 10 };

/*
 * The buffer has HELPER_PROCESS_BYTES. It begins with the arguments of the call; the function
 * writes its output to the start of the same buffer and returns the number of bytes, or a negative
 * number for a failure. *ret_fd is -1; the function may set it to an open descriptor. It must be
 * async-signal-safe: no heap, no locks, no log.
 */
typedef int64_t helper_process_function(void *buffer, int *ret_fd);

struct helper_process_call {
    helper_process_function *function;
    const void *arguments;
    size_t argument_bytes; /* at most HELPER_PROCESS_BYTES */
    /* If the call does not end, later calls for the same owner are refused for ten minutes. The
     * owner is find_owner(process_id); if process_id is 0, it is user_id. */
    uint32_t process_id;
    uint32_t user_id;
    uint64_t (*find_owner)(uint32_t process_id); /* process_file_owner */
    void *data; /* receives at most data_bytes of the buffer; NULL: nothing is copied */
    size_t data_bytes;
};

/* Returns the result of the function, or -1 if it did not end or calls for the owner are refused at
 * present. The caller closes *ret_fd (-1: none); ret_fd may be NULL. */
int64_t helper_process_call(const struct helper_process_call *call, int *ret_fd);

#endif

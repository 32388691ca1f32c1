/*
 * helper_process: calls functions that can wait for ever in another process.
 *
 * Reading the memory of a process, or opening a file by its path, can wait for a FUSE file system
 * whose server, a program of any user, does not respond; then not even SIGKILL ends the reader. So
 * a privileged agent makes such calls in a helper process. If the helper is blocked for a few
 * seconds, it is abandoned, another one takes its place, and nothing is read for processes of the
 * same owner (process_file.h) for some minutes.
 *
 * The helper is a fork that shares a socket and a buffer with its parent and ends with it. Without
 * privileges the function is called directly: a user can then only block the own command. Threads:
 * any; one call at a time.
 */
#ifndef AGENT_PROCESS_HELPER_PROCESS_H
#define AGENT_PROCESS_HELPER_PROCESS_H

#include <stddef.h>
#include <stdint.h>

enum { HELPER_PROCESS_BYTES = 256 << 10 };

/*
 * The buffer has HELPER_PROCESS_BYTES: it begins with the arguments, and receives what the function
 * reads. Returns the number of bytes in it, or a negative number. *ret_fd is -1 and may be set to
 * an open file. Must be async-signal-safe: no heap, no locks, no log.
 */
typedef int64_t helper_process_function(void *buffer, int *ret_fd);

struct helper_process_call {
    helper_process_function *function;
    const void *arguments;
    size_t argument_bytes;
    /* If the call does not end, the owner of this process is refused for a while; 0: user_id is. */
    uint32_t process_id;
    uint32_t user_id;
    uint64_t (*find_owner)(uint32_t process_id); /* process_file_owner */
    void *data; /* receives at most data_bytes of the buffer; NULL: nothing is copied */
    size_t data_bytes;
};

/* Returns the result of the function; -1 also if it did not end, or if the owner is refused now.
 * The caller closes *ret_fd (-1: none). */
int64_t helper_process_call(const struct helper_process_call *call, int *ret_fd);

#endif

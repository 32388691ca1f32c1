/*
 * sandbox: drops every privilege that reading a file and writing a table does not need.
 *
 * After sandbox_enter the process can allocate memory and use its open descriptors; it cannot open,
 * connect or execute anything, nor signal another process. A system call that is not on the list
 * kills the process.
 * Calls that libraries try without needing them (opening a file to read a setting) fail with
 * EACCES. Only sandbox.c includes libseccomp and Landlock. Threads: the process must have one
 * thread.
 */
#ifndef DEBUGINFOD_SANDBOX_H
#define DEBUGINFOD_SANDBOX_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct sandbox_limits {
    uint64_t memory_bytes; /* of address space, including mapped files */
    uint64_t output_bytes; /* of each file that is written */
    unsigned cpu_s;
};

/*
 * Enters the sandbox. *ret_warning is a text when the kernel lacks Landlock, else NULL. Errors:
 * ERR_UNSUPPORTED: the kernel has no seccomp filters, or refuses a limit; no file may be read then.
 */
enum err_code sandbox_enter(const struct sandbox_limits *limits, const char **ret_warning,
                            struct err *err) MUST_USE;

#endif

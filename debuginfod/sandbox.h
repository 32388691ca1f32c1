/*
 * sandbox: gives up everything that reading a file and writing a table does not need.
 *
 * After sandbox_enter the process can use the memory it asks for and the descriptors it has; it can
 * open, connect, run and signal nothing. A system call that is not on the list ends the process;
 * those that libraries try without need (opening a file to read a setting) fail with EACCES.
 * The doors to libseccomp and Landlock. One thread.
 */
#ifndef DEBUGINFOD_SANDBOX_H
#define DEBUGINFOD_SANDBOX_H

#include "lib/base/err.h"

#include <stdint.h>

struct sandbox_limits {
    uint64_t memory_bytes; /* of address space, mapped files too */
    uint64_t output_bytes; /* of one file that is written */
    unsigned cpu_s;
};

/*
 * *ret_warning is a text when the kernel lacks Landlock, else NULL. Handles: ERR_UNSUPPORTED: the
 * kernel has no seccomp filters; then nothing may be read.
 */
enum err_code sandbox_enter(const struct sandbox_limits *limits, const char **ret_warning,
                            struct err *err) MUST_USE;

#endif

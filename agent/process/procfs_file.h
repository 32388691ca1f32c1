/*
 * procfs_file: reads files of /proc and /sys, which report no size. Threads: any.
 */
#ifndef AGENT_PROCESS_PROCFS_FILE_H
#define AGENT_PROCESS_PROCFS_FILE_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

/* Appends the content to text. Errors: ERR_NOT_FOUND (no such file, or its process ended during
 * the read), ERR_TOO_LARGE (more than text may hold), ERR_FORBIDDEN, ERR_IO. name is for messages.
 */
enum err_code procfs_file_read(const char *path, struct buf *text, struct err *err) MUST_USE;
enum err_code procfs_file_read_fd(int fd, const char *name, struct buf *text,
                                  struct err *err) MUST_USE;

#endif

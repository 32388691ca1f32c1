/*
 * small_file: files of /proc and /sys, whose size is not known before they are read. Threads: any.
 */
#ifndef AGENT_PROCESS_PROCFS_FILE_H
#define AGENT_PROCESS_PROCFS_FILE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Appends the file to text. Handles: ERR_NOT_FOUND (also when its process ends meanwhile),
 * ERR_TOO_LARGE (text's maximum), ERR_FORBIDDEN, ERR_IO. */
enum err_code procfs_file_read(const char *path, struct buf *text, struct err *err) MUST_USE;
enum err_code procfs_file_read_fd(int fd, const char *name, struct buf *text,
                                  struct err *err) MUST_USE;

#endif

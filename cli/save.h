/*
 * save: writes a result to a file: completely or not at all, and without replacing a file unless
 * forced.
 */
#ifndef CLI_SAVE_H
#define CLI_SAVE_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct arena;

/* A temporary file beside path, which save_commit renames to path. If path is "-" (standard output)
 * or exists and is no regular file, such as /dev/null, there is none: fd writes directly. */
struct save {
    const char *path;
    char *temporary; /* NULL: fd writes directly */
    int fd;
    bool is_forced;
};
/* Creates the temporary file. The caller writes to ret_save->fd; path is borrowed until save_close.
 * Errors: ERR_CONFLICT (a regular file exists and is_forced is false), ERR_IO. */
enum err_code save_open(const char *path, bool is_forced, struct arena *arena,
                        struct save *ret_save, struct err *err) MUST_USE;
/* Syncs the temporary file and renames it to its path. Errors: ERR_CONFLICT (the path exists by
 * now), ERR_IO. Call save_close afterwards, also after an error. If a signal ends the process
 * before save_close (cli/interrupt.h), the temporary file is removed. */
enum err_code save_commit(struct save *save, struct err *err) MUST_USE;
/* Closes fd, unless it is standard output, and removes a file that was not committed; safe to
 * repeat. */
void save_close(struct save *save);

/* Writes bytes to path: save_open, save_commit and save_close. */
enum err_code save_bytes(struct span bytes, const char *path, bool is_forced,
                         struct err *err) MUST_USE;

#endif

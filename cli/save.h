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

/*
 * A temporary file beside path, which save_commit renames, or standard output for "-". save_open
 * handles: ERR_CONFLICT (path exists and is_forced is not set), ERR_IO.
 */
struct save {
    const char *path;
    char *temporary; /* NULL for standard output */
    int fd;
    bool is_forced;
};
enum err_code save_open(const char *path, bool is_forced, struct arena *arena,
                        struct save *ret_save, struct err *err) MUST_USE;
/* Handles: ERR_CONFLICT, ERR_IO. Call save_close in any case. An interrupt before that
 * (cli/interrupt.h) removes the temporary file. */
enum err_code save_commit(struct save *save, struct err *err) MUST_USE;
/* Removes a file that was not committed; safe to repeat. */
void save_close(struct save *save);

enum err_code save_bytes(struct span bytes, const char *path, bool is_forced,
                         struct err *err) MUST_USE;

#endif

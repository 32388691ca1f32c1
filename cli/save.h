/*
 * save: results into files: whole or not at all, and nothing replaced unasked.
 */
#ifndef CLI_SAVE_H
#define CLI_SAVE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>

struct arena;

/*
 * A file beside path that save_commit gives its name, or standard output for "-". Handles:
 * ERR_CONFLICT (path is there and not forced), ERR_IO.
 */
struct save {
    const char *path;
    char *temporary; /* NULL for standard output */
    int fd;
    bool is_forced;
};
enum err_code save_open(const char *path, bool is_forced, struct arena *arena,
                        struct save *ret_save, struct err *err) MUST_USE;
/* Handles: ERR_CONFLICT, ERR_IO. Whatever it returns, save_close follows. An interrupt in
 * between (cli/interrupt.h) removes the file. */
enum err_code save_commit(struct save *save, struct err *err) MUST_USE;
/* Removes what was not committed; safe to repeat. */
void save_close(struct save *save);

enum err_code save_bytes(struct span bytes, const char *path, bool is_forced,
                         struct err *err) MUST_USE;

#endif

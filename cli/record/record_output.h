/*
 * record_output: the file of a recording, which cannot be made again: that it can be written is
 * tried before the recording begins, and where it cannot be in the end, as on a disk that is full
 * by then, what was recorded is kept elsewhere. Threads: one.
 */
#ifndef CLI_RECORD_RECORD_OUTPUT_H
#define CLI_RECORD_RECORD_OUTPUT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>

struct arena;
struct terminal;

/* Leaves nothing behind. Handles: ERR_NOT_FOUND (there is no such folder), ERR_IO. */
enum err_code record_output_try(const char *path, struct arena *arena, struct err *err) MUST_USE;

/* As profile-DATE-XXXXXX.pb.gz, the end by chance, in the current folder, else in $TMPDIR or /tmp,
 * there for this user alone. It is told where, or why nowhere, which is false. */
bool record_output_keep(struct terminal *terminal, struct arena *arena, struct span bytes);

#endif

/*
 * record_output: the output file of a recording, which cannot be repeated. The path is checked
 * before the recording begins. If the final write fails, for example on a full disk, the profile is
 * saved elsewhere. Threads: one.
 */
#ifndef CLI_RECORD_RECORD_OUTPUT_H
#define CLI_RECORD_RECORD_OUTPUT_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct arena;
struct terminal;

/* Checks that path can be written, by creating and removing a file beside it. Errors: ERR_NOT_FOUND
 * (no such folder), ERR_IO. */
enum err_code record_output_try(const char *path, struct arena *arena, struct err *err) MUST_USE;

/* Saves bytes as profile-DATE-XXXXXX.pb.gz (random suffix) in the current folder, else in $TMPDIR
 * or /tmp, readable by this user only. Prints the path, and the reason for each folder that failed.
 * Returns false if none is left. */
bool record_output_keep(struct terminal *terminal, struct arena *arena, struct span bytes);

#endif

/*
 * merge: merges several inputs to one pprof file.
 */
#ifndef CLI_COMMANDS_MERGE_H
#define CLI_COMMANDS_MERGE_H

#include "lib/base/err_code.h"

struct cli;
struct cli_texts;
struct input;

/*
 * Reads the inputs that arguments name and merges them. *ret_input, which the caller closes, is the
 * merged profile as pprof, compressed with gzip. seconds: as in source_open. Errors: those of
 * source_open, input_decode and merge_profiles.
 */
enum err_code merge_inputs(struct cli *cli, const struct cli_texts *arguments, int seconds,
                           struct input *ret_input, struct err *err) MUST_USE;

#endif

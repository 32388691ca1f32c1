/*
 * record_delivery: what happens to the profile of a recording: symbolization, pprof, a file, a
 * share.
 *
 * A recording cannot be repeated: every step is tried even if another one has failed, and the
 * profile is saved in a file of its own if neither file nor share has it.
 */
#ifndef CLI_RECORD_RECORD_DELIVERY_H
#define CLI_RECORD_RECORD_DELIVERY_H

#include "lib/base/err_code.h"

struct mapped_files;
struct profile;
struct record_options;

struct record_delivery {
    const struct record_options *options;
    struct mapped_files *files; /* NULL: the profile is not symbolized */
    const char *target_name;    /* name of the first process; empty: unknown */
};

/* Writes and shares the profile as the options say. Errors: those of the first failed step. */
enum err_code record_delivery_finish(const struct record_delivery *delivery,
                                     struct profile *profile, struct err *err) MUST_USE;

#endif

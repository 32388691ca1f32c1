/*
 * record_delivery: what happens to the profile of a recording: symbolization, pprof, a file, a
 * share.
 *
 * A recording cannot be repeated. So the share is tried even if writing the file failed, and
 * record_output_keep saves the profile if the file cannot be written, or if the upload failed and
 * no file was written. Only if the profile cannot be encoded (more than 1 GiB), nothing is saved.
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

/* Writes and shares the profile as the options say. Errors: those
 * of the first failed step. */
enum err_code record_delivery_finish(const struct record_delivery *delivery,
                                     struct profile *profile, struct err *err) MUST_USE;

#endif

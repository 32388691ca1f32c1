/*
 * settings_options: the options of push, diff and merge for the settings of a new share, as a
 * part of their tables.
 */
#ifndef CLI_SETTINGS_OPTIONS_H
#define CLI_SETTINGS_OPTIONS_H

#include "cli/cli.h"
#include "cli/share_print.h"
#include "cli/upload.h"

struct settings_options {
    struct cli *cli;
    struct upload_settings settings;
    struct cli_texts labels;
    const char *password_file;
    enum share_output output;
};

/* Its values are a struct settings_options. */
extern const struct option_table settings_options;
/* For a command's array of parts; offset is that of the struct. */
#define SETTINGS_OPTIONS_PART(offset)                                                              \
    {                                                                                              \
        &settings_options, offset, "Settings of the new share:", 1                                 \
    }

/* Call it after parsing: sets the labels, and reads the password from its file or from the
 * terminal. profiles are the command's arguments; only one of them and the password may be standard
 * input. Errors: ERR_INVALID, ERR_IO, ERR_NOT_FOUND. */
enum err_code settings_options_finish(struct settings_options *options,
                                      const struct cli_texts *profiles, struct err *err) MUST_USE;

#endif

/*
 * arguments: --quiet, and the profiles or links that most commands process one after the other.
 *
 * A command includes arguments_options as a part of its own table, and sets cli and wanted before
 * parsing. It must not have its own take_argument. Its check is called when texts is complete.
 */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "cli/cli.h"

struct arguments {
    struct cli *cli;
    const char *wanted; /* the usage error if there are no texts: "give a link or an id" */
    struct cli_texts texts;
};

extern const struct option_table arguments_options;
/* For a command's array of parts; offset is that of the struct arguments. */
#define ARGUMENTS_PART(offset)                                                                     \
    {                                                                                              \
        &arguments_options, offset, NULL, 0                                                        \
    }

/*
 * Checks that at most one of texts and secret_file (may be NULL) is "-", standard input.
 * Errors: ERR_INVALID as a usage error.
 */
enum err_code arguments_check_stdin(struct cli *cli, const struct cli_texts *texts,
                                    const char *secret_file, struct err *err) MUST_USE;

/*
 * Calls act(context, text, err) for each text, also after a failure. If there is only one text, its
 * error is returned unchanged. With several, each error is printed at once, and the code of the
 * first one is returned. done is the participle for the final message, such as "pushed".
 */
enum err_code arguments_each(const struct arguments *arguments, const char *done,
                             enum err_code (*act)(void *context, const char *text, struct err *err),
                             void *context, struct err *err) MUST_USE;

#endif

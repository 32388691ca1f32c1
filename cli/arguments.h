/*
 * arguments: --quiet, and the profiles or links that most commands process one after the other.
 *
 * An argp child (arguments_argp) whose input is a struct arguments. A command that uses it must not
 * handle ARGP_KEY_ARG itself. When the command's parser gets ARGP_KEY_END, texts is complete,
 * because children get that key first.
 */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "cli/cli.h"

struct arguments {
    struct cli *cli;
    const char *wanted; /* the usage error if there are no texts: "name a link or an id" */
    struct cli_texts texts;
};

extern const struct argp arguments_argp;
/* For a command's array of children, alone or beside others. */
#define ARGUMENTS_CHILD                                                                            \
    {                                                                                              \
        &arguments_argp, 0, NULL, 0                                                                \
    }
extern const struct argp_child arguments_children[];

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

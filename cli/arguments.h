/*
 * arguments: what most commands take beside options of their own: --quiet, and the profiles or
 * links to work on, one after the other.
 *
 * It is an argp child whose input is a struct arguments; a command that has it leaves
 * ARGP_KEY_ARG alone, and sees texts complete at ARGP_KEY_END, which children get first.
 */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "cli/cli.h"

struct arguments {
    struct cli *cli;
    const char *wanted; /* the usage error when there are none: "name a link or an id" */
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
 * Standard input can be read once: by one of texts that is "-", or as secret_file (may be NULL).
 * Handles: ERR_INVALID as a usage error.
 */
enum err_code arguments_check_stdin(struct cli *cli, const struct cli_texts *texts,
                                    const char *secret_file, struct err *err) MUST_USE;

/*
 * Calls act with each text and goes on behind one that fails. A single failure of a single text
 * goes up as it is; of several each is told at once, and the code is that of the first. done is
 * what could not be done with all: "pushed".
 */
enum err_code arguments_each(const struct arguments *arguments, const char *done,
                             enum err_code (*act)(void *context, const char *text, struct err *err),
                             void *context, struct err *err) MUST_USE;

#endif

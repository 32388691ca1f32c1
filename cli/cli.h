/*
 * cli: the state that main passes to every command, and the declaration of commands.
 *
 * Each subcommand is one file with one struct command. command_list.c lists them in one table, from
 * which help and shell completion are made. A subcommand parses its arguments with a table of
 * options (lib/input/options.h; a usage error ends the process with EXIT_USAGE), prints results on
 * standard output and everything else through the terminal, and returns an error code, which main
 * reports once and converts to the exit status. Threads: one.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/account.h"
#include "cli/terminal.h"
#include "lib/base/err_code.h"
#include "lib/input/options.h"

#include <stddef.h>

struct arena;
struct command;

struct cli {
    struct arena *arena;                   /* lives as long as the process */
    const struct command *const *commands; /* all of them; NULL-terminated */
    struct terminal terminal;
    struct account account; /* zero for commands that need none: help, version, completion */
    bool is_usage_error;    /* the returned error is in arguments or settings: EXIT_USAGE */
    int command_status;     /* exit status of the recorded command; 0: none, or success */
};

/* The kind of a subcommand's arguments, for completion. */
enum command_arguments {
    ARGUMENTS_NONE,
    ARGUMENTS_FILES,
    ARGUMENTS_LINKS,
    ARGUMENTS_BOTH,
    ARGUMENTS_WORDS
};

struct command {
    const char *name;
    const char *summary; /* one line */
    const struct option_table *options;
    enum command_arguments arguments;
    const char *const *words; /* possible first arguments, for completion; NULL-terminated. NULL:
                                 none. Always set with ARGUMENTS_WORDS */
    /* argv[0] is "perfolio <name>". */
    enum err_code (*run)(struct cli *cli, int argc, char **argv, struct err *err);
};

extern const struct command push_command;
extern const struct command diff_command;
extern const struct command top_command;
extern const struct command query_command;
extern const struct command export_command;
extern const struct command get_command;
extern const struct command delete_command;
extern const struct command list_command;
extern const struct command usage_command;
extern const struct command open_command;
extern const struct command merge_command;
extern const struct command record_command;
extern const struct command debuginfo_command;
extern const struct command login_command;
extern const struct command logout_command;
extern const struct command admin_command;
extern const struct command completion_command;
extern const struct command version_command;
extern const struct command help_command;

/* The table in command_list.c; NULL-terminated. Commands use the one of struct cli. */
extern const struct command *const cli_commands[];

/* Arguments other than options, collected with cli_texts_add. */
struct cli_texts {
    const char **texts;
    size_t count;
    size_t capacity; /* allocated entries; only cli_texts_add uses it */
};
/* Allocates in the process's arena. */
void cli_texts_add(struct cli *cli, struct cli_texts *texts, const char *text);

/* Ends the process with a usage error that suggests an option if argv contains a misspelt long
 * option. Call it before options_parse, which only reports an unknown option. */
void cli_check_options(const struct option_table *options, int argc, char **argv);
/* Returns "; did you mean NAME?" if typed is similar to one of names (NULL-terminated), else "". In
 * the process's arena. */
const char *cli_did_you_mean(struct cli *cli, const char *typed, const char *const *names);

/* Parses with command->options into values. Ends the process on a usage error. */
void cli_parse(const struct command *command, int argc, char **argv, void *values);

/* Reports a usage error after options_parse: sets ERR_INVALID, which ends with EXIT_USAGE. */
enum err_code cli_usage(struct cli *cli, struct err *err, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* As client_create for the account of cli; ERR_INVALID becomes a usage error. */
struct client;
enum err_code cli_connect(struct cli *cli, const char *base, struct client **ret_client,
                          struct err *err) MUST_USE;

/* Flushes standard output. Errors: ERR_IO (disk full), ERR_CANCELLED (the reader closed it: main
 * then ends the process by SIGPIPE without a message). */
enum err_code cli_flush(struct err *err) MUST_USE;
/* After a failed write to fd: changes ERR_IO to ERR_CANCELLED if fd is standard output and its
 * reader closed it. Returns the code. */
enum err_code cli_check_reader(int fd, struct err *err) MUST_USE;

/* Reads a secret: the first line of file, or of standard input if file is "-". *ret_secret is in
 * the process's arena. Errors: ERR_IO, ERR_NOT_FOUND, ERR_INVALID (empty, of more than 4 KiB, or
 * with a control character). */
enum err_code cli_read_secret(struct cli *cli, const char *file, const char **ret_secret,
                              struct err *err) MUST_USE;

#endif

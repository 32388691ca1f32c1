#include "cli/cli.h"
#include "cli/version.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <stdlib.h>

static enum err_code refuse_argument(void *values, const char *text, struct err *err)
{
    (void)values;
    (void)text;
    return err_set(err, ERR_INVALID, "too many arguments");
}

static const struct option_table version_options = {
    .take_argument = refuse_argument,
    .text = "Print the version.",
};

static enum err_code run_version(struct cli *cli, int argc, char **argv, struct err *err)
{
    (void)cli;
    cli_parse(&version_command, argc, argv, NULL);
    puts("perfolio " CLI_VERSION);
    return cli_flush(err);
}

const struct command version_command = {
    .name = "version",
    .summary = "print the version",
    .options = &version_options,
    .run = run_version,
};

struct help {
    const struct cli *cli;
    const struct command *command;
};

static enum err_code take_command(void *values, const char *text, struct err *err)
{
    struct help *help = values;
    const struct command *const *commands = help->cli->commands;
    for (size_t i = 0; commands[i]; i++) {
        if (strcmp(commands[i]->name, text) == 0)
            help->command = commands[i];
    }
    return help->command ? ERR_NONE
                         : err_set(err, ERR_INVALID,
                                   "unknown command \"%.60s\"; run perfolio help for a list", text);
}

static const struct option_table help_options = {
    .take_argument = take_command,
    .arguments = "[COMMAND]",
    .text = "List all commands, or describe one.",
};

static void print_commands(const struct cli *cli)
{
    const char *bold = terminal_style(&cli->terminal, stdout, STYLE_BOLD);
    const char *reset = terminal_style(&cli->terminal, stdout, STYLE_RESET);
    printf("%sperfolio%s uploads, compares and queries profiles and prints links to them.\n\n",
           bold, reset);
    puts("Usage: perfolio COMMAND [ARGUMENTS]\n");
    for (const struct command *const *each = cli->commands; *each; each++)
        printf("  %s%-11s%s %s\n", bold, (*each)->name, reset, (*each)->summary);
    printf(
        "\n%sperfolio COMMAND --help%s describes a command, with its defaults in parentheses.\n"
        "perfolio(1) is the manual.\n"
        "PERFOLIO_URL, PERFOLIO_TOKEN and PERFOLIO_CA_FILE take precedence over the values that\n"
        "login stored.\n\n"
        "  perfolio login https://profiles.example.org\n"
        "  perfolio push cpu.pb.gz\n"
        "  perfolio push --seconds 10 http://localhost:6060/debug/pprof/profile\n"
        "  perfolio diff before.pb.gz after.pb.gz\n",
        bold, reset);
}

static enum err_code run_help(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct help help = {.cli = cli};
    cli_parse(&help_command, argc, argv, &help);
    if (help.command) {
        char *name = arena_printf(cli->arena, "perfolio %s", help.command->name);
        options_print_help(help.command->options, name);
    } else {
        print_commands(cli);
    }
    return cli_flush(err);
}

const struct command help_command = {
    .name = "help",
    .summary = "list all commands, or describe one",
    .options = &help_options,
    .arguments = ARGUMENTS_NONE,
    .run = run_help,
};

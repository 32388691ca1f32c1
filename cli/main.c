/* perfolio: finds the command in a table, runs it, reports its error. */
#include "cli/cli.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void use_unicode(void)
{
    /* Only LC_CTYPE, for the widths of characters; numbers keep their decimal point. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        setlocale(LC_CTYPE, "C.UTF-8");
}

/* If a standard descriptor is closed, a file or connection could get its number and receive output.
 * Occupies the number with a descriptor whose use fails. */
static void occupy_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
            _exit(EXIT_ERROR);
    }
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    }
    return NULL;
}

static const struct command *choose_command(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name)
        return NULL;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "-?") == 0)
        return &help_command;
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return &version_command;
    return find_command(name);
}

/* Ends by SIGPIPE, as usual after `| head` closes the pipe: status 141 in a shell. */
static void end_without_reader(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

/* Flushes what options_parse prints for --help, which otherwise only exit(3) writes. */
static void flush_at_exit(void)
{
    struct err err;
    if (cli_flush(&err) == ERR_CANCELLED)
        end_without_reader();
}

static int report_result(struct cli *cli, enum err_code code, const struct err *err)
{
    terminal_progress_end(&cli->terminal);
    if (!code)
        return EXIT_OK;
    if (code == ERR_CANCELLED)
        end_without_reader();
    terminal_fail(&cli->terminal, "%s", err->message);
    return (int)(cli->is_usage_error ? EXIT_USAGE : exit_code_of(code));
}

static int run_command(struct cli *cli, const struct command *command, int argc, char **argv)
{
    struct err err = {0};
    /* Commands without an account work with a broken settings file, too. */
    bool needs_account =
        command != &help_command && command != &version_command && command != &completion_command;
    enum err_code code = needs_account ? account_load(cli->arena, &cli->account, &err) : ERR_NONE;
    if (code) {
        cli->is_usage_error = true;
        return report_result(cli, code, &err);
    }
    if (cli->account.is_readable_by_others)
        terminal_warn(&cli->terminal, "other users can read the token in %s: chmod 600 it",
                      cli->account.config_file);
    code = command->run(cli, argc, argv, &err);
    const int status = report_result(cli, code, &err);
    return cli->command_status ? cli->command_status : status;
}

static void refuse_command(struct cli *cli, const char *typed)
{
    const char *names[64] = {NULL};
    for (size_t i = 0; cli_commands[i] && i + 1 < sizeof(names) / sizeof(names[0]); i++)
        names[i] = cli_commands[i]->name;
    const char *advice = cli_did_you_mean(cli, typed, names);
    terminal_fail(&cli->terminal, "unknown command \"%.60s\"%s%s", typed, advice,
                  advice[0] ? "" : "; run perfolio help for a list");
}

int main(int argc, char **argv)
{
    occupy_standard_files();
    use_unicode();
    signal(SIGPIPE, SIG_IGN); /* write(2) to a broken connection then fails with EPIPE */
    atexit(flush_at_exit);
    interrupt_install();
    struct cli cli = {.arena = arena_create(), .commands = cli_commands};
    const struct command *command = choose_command(argc, argv);
    if (!command) {
        terminal_init(&cli.terminal, "perfolio");
        if (argc > 1)
            refuse_command(&cli, argv[1]);
        else
            terminal_fail(&cli.terminal, "give a command: run perfolio help for a list");
        arena_destroy(cli.arena);
        return EXIT_USAGE;
    }
    /* options_parse and getopt use argv[0] in their messages. */
    char *name = arena_printf(cli.arena, "perfolio %s", command->name);
    terminal_init(&cli.terminal, name);
    argv[1] = name;
    program_invocation_name = program_invocation_short_name = name;
    int status = run_command(&cli, command, argc - 1, argv + 1);
    arena_destroy(cli.arena);
    return status;
}

#include "cli/commands/open.h"

#include "cli/cli.h"
#include "cli/link.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Redirects the browser's output to standard error, which does not contain results. */
static int start_browser(const char *program, const char *url)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    char *arguments[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)url, NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int result = posix_spawnp(&pid, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (result)
        return result;
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    /* 127: posix_spawn could not execute the program; 3: xdg-open found no browser. */
    return WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 3) ? ENOENT
                                                                                         : 0;
}

enum err_code open_url(const char *url, struct err *err)
{
    const char *browser = getenv("BROWSER");
    int result = start_browser("xdg-open", url);
    if (result == ENOENT && browser && browser[0])
        result = start_browser(browser, url);
    if (result == ENOENT)
        return err_set(err, ERR_NOT_FOUND,
                       "neither xdg-open nor $BROWSER opens a browser; the link is %s", url);
    errno = result;
    return result ? err_set_errno(err, ERR_IO, "starting xdg-open") : ERR_NONE;
}

struct open {
    struct cli *cli;
    struct cli_texts arguments;
};

static enum err_code take_link(void *values, const char *text, struct err *err)
{
    struct open *open = values;
    (void)err;
    cli_texts_add(open->cli, &open->arguments, text);
    return ERR_NONE;
}

static enum err_code check_links(void *values, struct err *err)
{
    const struct open *open = values;
    return open->arguments.count ? ERR_NONE : err_set(err, ERR_INVALID, "give a link or an id");
}

static const struct option_table options = {
    .take_argument = take_link,
    .check = check_links,
    .arguments = "LINK...",
    .text = "Open shares and diffs in a browser. LINK may be a link, an id, or two ids as A..B.",
};

static enum err_code open_one(struct cli *cli, const char *text, struct err *err)
{
    struct link link;
    if (!link_parse(text, cli->arena, &link))
        return cli_usage(cli, err, "%.200s is neither a Perfolio link nor an id", text);
    if (link.base) /* with the view state of the link */
        return open_url(text, err);
    if (!cli->account.url)
        return cli_usage(cli, err, "no server is set: run `perfolio login https://host`");
    return open_url(link.is_diff
                        ? arena_printf(cli->arena, "%s/d/%s..%s", cli->account.url, link.a, link.b)
                        : arena_printf(cli->arena, "%s/p/%s", cli->account.url, link.a),
                    err);
}

static enum err_code run_open(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct open open = {.cli = cli};
    enum err_code code = ERR_NONE;
    cli_parse(&open_command, argc, argv, &open);
    for (size_t i = 0; i < open.arguments.count && !code; i++)
        code = open_one(cli, open.arguments.texts[i], err);
    return code;
}

const struct command open_command = {
    .name = "open",
    .summary = "open a link in a browser",
    .options = &options,
    .arguments = ARGUMENTS_LINKS,
    .run = run_open,
};

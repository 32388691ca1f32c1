#include "cli/cli.h"

#include "cli/client.h"
#include "cli/exit_code.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/input/secret.h"
#include "lib/input/suggest.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_SECRET_BYTES = 4096 };

void cli_texts_add(struct cli *cli, struct cli_texts *texts, const char *text)
{
    arena_reserve(cli->arena, texts->texts, texts->capacity, texts->count + 1);
    texts->texts[texts->count++] = text;
}

void cli_check_options(const struct option_table *options, int argc, char **argv)
{
    const char *typed;
    const char *known = suggest_option(options, argc, argv, &typed);
    if (!known)
        return;
    fprintf(stderr, "%s: unrecognized option '", argv[0]);
    terminal_print_clean(stderr, span_of(typed, strcspn(typed, "=")));
    fprintf(stderr, "'; did you mean --%s?\nTry `%s --help' for more information.\n", known,
            argv[0]);
    exit(EXIT_USAGE);
}

const char *cli_did_you_mean(struct cli *cli, const char *typed, const char *const *names)
{
    size_t count = 0;
    while (names[count])
        count++;
    const char *known = suggest_name(typed, names, count);
    return known ? arena_printf(cli->arena, "; did you mean %s?", known) : "";
}

void cli_parse(const struct command *command, int argc, char **argv, void *values)
{
    cli_check_options(command->options, argc, argv);
    options_parse(command->options, argc, argv, values);
}

enum err_code cli_usage(struct cli *cli, struct err *err, const char *format, ...)
{
    char text[ERR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    cli->is_usage_error = true;
    return err_set(err, ERR_INVALID, "%s", text);
}

enum err_code cli_connect(struct cli *cli, const char *base, struct client **ret_client,
                          struct err *err)
{
    enum err_code code = client_create(&cli->account, base, &cli->terminal, ret_client, err);
    if (code == ERR_INVALID)
        cli->is_usage_error = true;
    return code;
}

enum err_code cli_flush(struct err *err)
{
    if (fflush(stdout) || ferror(stdout)) {
        err_set_errno(err, ERR_IO, "writing to standard output");
        return cli_check_reader(STDOUT_FILENO, err);
    }
    return ERR_NONE;
}

/* Queries the descriptor, because errno may be that of a later call than the one that failed. */
enum err_code cli_check_reader(int fd, struct err *err)
{
    struct pollfd output = {.fd = fd};
    if (err->code == ERR_IO && fd == STDOUT_FILENO && poll(&output, 1, 0) > 0 &&
        (output.revents & (POLLERR | POLLHUP)))
        return err_set(err, ERR_CANCELLED, "standard output was closed");
    return err->code;
}

enum err_code cli_read_secret(struct cli *cli, const char *file, const char **ret_secret,
                              struct err *err)
{
    bool is_stdin = strcmp(file, "-") == 0;
    const char *source = is_stdin ? "standard input" : file;
    char line[MAX_SECRET_BYTES];
    memset(line, '\n', sizeof(line));
    FILE *stream = is_stdin ? stdin : fopen(file, "re");
    if (!stream)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "reading %s", file);
    const char *read = fgets(line, sizeof(line), stream);
    bool is_broken = ferror(stream);
    if (is_broken)
        err_set_errno(err, ERR_IO, "reading %s", source);
    if (!is_stdin)
        fclose(stream);
    if (is_broken)
        return err->code;
    /* The last NUL is the one that fgets adds; others come from the file. */
    const char *end = memrchr(line, '\0', sizeof(line));
    const struct span text = span_of(line, read && end ? (size_t)(end - line) : 0);
    if (text.size == sizeof(line) - 1 && !memchr(line, '\n', text.size))
        return err_set(err, ERR_INVALID, "the first line of %s is too long for a secret", source);
    struct span secret = span_trim(text);
    if (secret.size == 0)
        return err_set(err, ERR_INVALID, "%s contains no secret in its first line", source);
    if (secret_check(secret, source, err))
        return err->code;
    *ret_secret = arena_strndup(cli->arena, secret.data, secret.size);
    return ERR_NONE;
}

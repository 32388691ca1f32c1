#include "cli/arguments.h"

#include "lib/base/err.h"

static enum err_code take_quiet(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    struct arguments *arguments = values;
    (void)row;
    (void)text;
    (void)err;
    arguments->cli->terminal.is_quiet = true;
    return ERR_NONE;
}

static const struct option_row rows[] = {
    {"quiet", 'q', NULL, "Print only warnings and errors", .take = take_quiet},
    {0},
};

static enum err_code take_text(void *values, const char *text, struct err *err)
{
    struct arguments *arguments = values;
    (void)err;
    cli_texts_add(arguments->cli, &arguments->texts, text);
    return ERR_NONE;
}

static enum err_code check_count(void *values, struct err *err)
{
    const struct arguments *arguments = values;
    return arguments->texts.count ? ERR_NONE : err_set(err, ERR_INVALID, "%s", arguments->wanted);
}

const struct option_table arguments_options = {
    .rows = rows, .take_argument = take_text, .check = check_count};

enum err_code arguments_check_stdin(struct cli *cli, const struct cli_texts *texts,
                                    const char *secret_file, struct err *err)
{
    size_t profiles = 0;
    bool is_secret = secret_file && strcmp(secret_file, "-") == 0;
    for (size_t i = 0; i < texts->count; i++)
        profiles += strcmp(texts->texts[i], "-") == 0;
    if (is_secret && profiles)
        return cli_usage(cli, err, "standard input cannot be both profile and password");
    if (profiles > 1)
        return cli_usage(cli, err, "standard input can be read only once");
    return ERR_NONE;
}

enum err_code arguments_each(const struct arguments *arguments, const char *done,
                             enum err_code (*act)(void *context, const char *text, struct err *err),
                             void *context, struct err *err)
{
    struct cli *cli = arguments->cli;
    size_t count = arguments->texts.count;
    enum err_code result = ERR_NONE;
    bool is_usage_error = false; /* of the first failure, like the code */
    for (size_t i = 0; i < count; i++) {
        struct err each = {0};
        if (!act(context, arguments->texts.texts[i], &each))
            continue;
        if (count == 1) {
            *err = each;
            return each.code;
        }
        if (each.code != ERR_CANCELLED)
            terminal_fail(&cli->terminal, "%s", each.message);
        if (!result) {
            result = each.code;
            is_usage_error = cli->is_usage_error;
        }
    }
    cli->is_usage_error = is_usage_error;
    return result ? err_set(err, result, "not all items were %s", done) : ERR_NONE;
}

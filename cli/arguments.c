#include "cli/arguments.h"

#include "lib/base/err.h"

static const struct argp_option options[] = {
    {"quiet", 'q', NULL, 0, "Print only warnings and errors", 0},
    {0},
};

static error_t parse_arguments_option(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case 'q':
        arguments->cli->terminal.is_quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        cli_texts_add(arguments->cli, &arguments->texts, text);
        return 0;
    case ARGP_KEY_END:
        if (arguments->texts.count == 0)
            argp_error(state, "%s", arguments->wanted);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp arguments_argp = {.options = options, .parser = parse_arguments_option};
const struct argp_child arguments_children[] = {ARGUMENTS_CHILD, {0}};

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

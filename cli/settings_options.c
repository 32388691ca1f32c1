#include "cli/settings_options.h"

#include "cli/arguments.h"
#include "lib/base/err.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"

#include <stdlib.h>

enum { MAX_PASSWORD_BYTES = 1024 };

enum { OPTION_PASSWORD_FILE = 0x100, OPTION_JSON, OPTION_MARKDOWN };

static const struct argp_option option_table[] = {
    {"title", 't', "TEXT", 0, "Title of the share", 0},
    {"description", 'd', "TEXT", 0, "Description, as Markdown", 0},
    {"expires", 'e', "TIME", 0, "When the share expires: 12h, 30d, 8w or never", 0},
    {"visibility", 'v', "VISIBILITY", 0, "public, unlisted, team or password", 0},
    {"password-file", OPTION_PASSWORD_FILE, "FILE", 0,
     "Protect the share with the password in the first line of FILE (- is standard input)", 0},
    {"label", 'l', "KEY=VALUE", 0, "Label the share; may be repeated", 0},
    {"name", 'n', "FILENAME", 0, "File name to show instead of the original one", 0},
    {"json", OPTION_JSON, NULL, 0, "Print the response of the server as one line of JSON", 0},
    {"markdown", OPTION_MARKDOWN, NULL, 0,
     "Print Markdown to paste: link, picture and the top functions", 0},
    {0},
};

static void check_visibility(const char *text, struct argp_state *state)
{
    static const char *const known[] = {"public", "unlisted", "team", "password"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(text, known[i]) == 0)
            return;
    }
    argp_error(state, "--visibility is public, unlisted, team or password, not %s", text);
}

static error_t parse_settings_options(int key, char *text, struct argp_state *state)
{
    struct settings_options *input = state->input;
    switch (key) {
    case 't':
        input->settings.title = text;
        return 0;
    case 'd':
        input->settings.description = text;
        return 0;
    case 'e':
        input->settings.expires = text;
        return 0;
    case 'v':
        check_visibility(text, state);
        input->settings.visibility = text;
        return 0;
    case OPTION_PASSWORD_FILE:
        input->password_file = text;
        return 0;
    case 'l':
        if (text[0] == '=' || !strchr(text, '='))
            argp_error(state, "--label takes KEY=VALUE, not %s", text);
        cli_texts_add(input->cli, &input->labels, text);
        return 0;
    case 'n':
        input->settings.filename = text;
        return 0;
    case OPTION_JSON:
        input->output = SHARE_OUTPUT_JSON;
        return 0;
    case OPTION_MARKDOWN:
        input->output = SHARE_OUTPUT_MARKDOWN;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp settings_options_argp = {.options = option_table,
                                           .parser = parse_settings_options};

static enum err_code prompt_password(struct settings_options *options, struct err *err)
{
    buf_auto first, second;
    buf_init(&first, MAX_PASSWORD_BYTES);
    buf_init(&second, MAX_PASSWORD_BYTES);
    enum err_code code = terminal_prompt_secret("Password of the share: ", &first, err);
    if (code == ERR_IO)
        return cli_usage(options->cli, err, "--visibility=password needs --password-file");
    if (code)
        return code;
    code = terminal_prompt_secret("Once more: ", &second, err);
    if (code)
        return code;
    if (first.size == 0 || !span_equal(buf_span(&first), buf_span(&second)))
        return err_set(err, ERR_INVALID, "the two passwords differ or are empty");
    options->settings.password = arena_strndup(options->cli->arena, first.data, first.size);
    return ERR_NONE;
}

enum err_code settings_options_finish(struct settings_options *options,
                                      const struct cli_texts *profiles, struct err *err)
{
    struct upload_settings *settings = &options->settings;
    settings->labels = options->labels.texts;
    settings->label_count = options->labels.count;
    bool wants_password = settings->visibility && strcmp(settings->visibility, "password") == 0;
    if (options->password_file && settings->visibility && !wants_password)
        return cli_usage(options->cli, err, "a password needs --visibility=password");
    enum err_code code = arguments_check_stdin(options->cli, profiles, options->password_file, err);
    if (code)
        return code;
    if (options->password_file) {
        settings->visibility = "password";
        return cli_read_secret(options->cli, options->password_file, &settings->password, err);
    }
    return wants_password ? prompt_password(options, err) : ERR_NONE;
}

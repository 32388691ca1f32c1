#include "cli/settings_options.h"

#include "cli/arguments.h"
#include "lib/base/err.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"

#include <stdlib.h>

enum { MAX_PASSWORD_BYTES = 1024 };

static enum err_code take_label(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    struct settings_options *options = values;
    if (text[0] == '=' || !strchr(text, '='))
        return options_refuse(row, text, err);
    cli_texts_add(options->cli, &options->labels, text);
    return ERR_NONE;
}

static const char *const visibilities[] = {"public", "unlisted", "team", "password", NULL};

static const struct option_row rows[] = {
    {"title", 't', "TEXT", "Title of the share",
     OPTION_TEXT(struct settings_options, settings.title)},
    {"description", 'd', "TEXT", "Description, as Markdown",
     OPTION_TEXT(struct settings_options, settings.description)},
    {"expires", 'e', "TIME", "When the share expires: 12h, 30d, 8w or never",
     OPTION_TEXT(struct settings_options, settings.expires)},
    {"visibility", 'v', "VISIBILITY", "public, unlisted, team or password",
     OPTION_WORD(struct settings_options, settings.visibility, visibilities),
     .error = "--visibility is {words}, not {value}"},
    {"password-file", 0, "FILE",
     "Protect the share with the password in the first line of FILE (- is standard input)",
     OPTION_TEXT(struct settings_options, password_file)},
    {"label", 'l', "KEY=VALUE", "Label the share; may be repeated", .take = take_label,
     .error = "--label takes KEY=VALUE, not {value}"},
    {"name", 'n', "FILENAME", "File name to show instead of the original one",
     OPTION_TEXT(struct settings_options, settings.filename)},
    {"json", 0, NULL, "Print the response of the server as one line of JSON",
     OPTION_VALUE(struct settings_options, output, SHARE_OUTPUT_JSON)},
    {"markdown", 0, NULL, "Print Markdown to paste: link, picture and the top functions",
     OPTION_VALUE(struct settings_options, output, SHARE_OUTPUT_MARKDOWN)},
    {0},
};

const struct option_table settings_options = {.rows = rows};

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

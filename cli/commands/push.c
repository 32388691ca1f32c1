#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/commands/merge.h"
#include "cli/commands/open.h"
#include "cli/commands/series.h"
#include "cli/input.h"
#include "cli/link.h"
#include "cli/settings_options.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/formats/format_list.h"
#include "lib/profile/profile.h"

#include <stdlib.h>

enum { MAX_SECONDS = 24 * 3600 };

struct push {
    struct cli *cli;
    struct settings_options settings;
    struct arguments arguments;
    struct client *client;
    bool is_merge;
    bool is_unchecked;
    bool is_opened;
    int seconds;
    bool is_series; /* add to continuous profiles instead of creating shares */
    enum series_format format;
    struct cli_texts series_labels;
};

static enum err_code take_series(void *values, const struct option_row *row, const char *text,
                                 struct err *err)
{
    struct push *push = values;
    push->is_series = true;
    if (text[0] == '=' || !strchr(text, '='))
        return options_refuse(row, text, err);
    cli_texts_add(push->cli, &push->series_labels, text);
    return ERR_NONE;
}

static enum err_code take_format(void *values, const struct option_row *row, const char *text,
                                 struct err *err)
{
    struct push *push = values;
    push->is_series = true;
    push->format = strcmp(text, "otlp") == 0 ? SERIES_FORMAT_OTLP : SERIES_FORMAT_PROFILE;
    return push->format == SERIES_FORMAT_PROFILE && strcmp(text, "profile") != 0
               ? options_refuse(row, text, err)
               : ERR_NONE;
}

static const char *const formats[] = {"otlp", "profile", NULL};

static const struct option_row rows[] = {
    {"merge", 0, NULL, "Merge all profiles into one share", OPTION_FLAG(struct push, is_merge)},
    {"seconds", 0, "N", "Let a pprof URL measure for N seconds",
     OPTION_NUMBER(struct push, seconds, 1, MAX_SECONDS, 1),
     .error = "--seconds takes a number from {min} to {max}"},
    {"no-check", 0, NULL, "Upload without checking the profile first",
     OPTION_FLAG(struct push, is_unchecked)},
    {"open", 0, NULL, "Open the link in a browser", OPTION_FLAG(struct push, is_opened)},
    {"series", 0, "NAME=VALUE", "Add to the continuous profiles of this label; may be repeated",
     .take = take_series, .error = "--series takes NAME=VALUE, not {value}"},
    {"format", 0, "FORMAT", "otlp: a saved OpenTelemetry batch; profile: any other format",
     .take = take_format, .words = formats, .error = "--format is {words}, not {value}"},
    {0},
};

static enum err_code check_arguments(void *values, struct err *err)
{
    const struct push *push = values;
    return push->is_merge && push->is_unchecked
               ? err_set(err, ERR_INVALID,
                         "--merge must read the profiles: it cannot be combined with --no-check")
               : ERR_NONE;
}

static const struct option_part parts[] = {SETTINGS_OPTIONS_PART(offsetof(struct push, settings)),
                                           ARGUMENTS_PART(offsetof(struct push, arguments)),
                                           {0}};
static const struct option_table options = {
    .rows = rows,
    .check = check_arguments,
    .arguments = "FILE|-|URL...",
    .text = "Upload profiles and print a link to each, one per line.\v"
            "Formats: " FORMAT_LIST_TEXT ". A URL is downloaded first. With --series or --format "
            "nothing is shared: the profiles are added to the continuous ones.",
    .parts = parts,
};

static enum err_code check_profile(struct push *push, struct input *input, struct err *err)
{
    struct profile *profile;
    const char *format;
    enum err_code code = input_decode(input, &format, &profile, err);
    if (code) {
        size_t length = strlen(err->message);
        snprintf(err->message + length, sizeof(err->message) - length,
                 " (--no-check uploads it anyway)");
        return code;
    }
    share_print_profile(push->cli, input, format, profile);
    input_warn(input, profile, &push->cli->terminal);
    profile_destroy(profile);
    return ERR_NONE;
}

static enum err_code push_input(struct push *push, const struct input *input, struct err *err)
{
    struct upload_settings settings = push->settings.settings;
    json_auto_t *share = NULL;
    if (!settings.filename)
        settings.filename = input->filename;
    enum err_code code =
        upload_share(push->client, &push->cli->terminal, input, &settings, &share, err);
    if (code)
        return err_add(err, "%s", input->name);
    code =
        share_print_result(push->cli, push->client, push->settings.output, share, &settings, err);
    share_print_details(push->cli, share, &settings);
    if (code)
        return code;
    if (push->is_opened)
        return open_url(client_text(share, "url", ""), err);
    return ERR_NONE;
}

static enum err_code push_to_series(struct push *push, struct input *input, struct err *err)
{
    const struct series_settings settings = {
        .labels = push->series_labels.texts,
        .label_count = push->series_labels.count,
        .format = push->format,
        .is_unchecked = push->is_unchecked,
        .is_json = push->settings.output == SHARE_OUTPUT_JSON,
    };
    enum err_code code = series_push(push->cli, push->client, input, &settings, err);
    return code ? err_add(err, "%s", input->name) : ERR_NONE;
}

static enum err_code push_one(void *context, const char *argument, struct err *err)
{
    struct push *push = context;
    struct cli *cli = push->cli;
    struct link link;
    if (link_is_url(argument) && link_parse(argument, cli->arena, &link))
        return err_set(err, ERR_INVALID, "%s is a Perfolio link already", argument);
    input_auto input = INPUT_NONE;
    enum err_code code =
        input_open(argument, push->seconds, &cli->terminal, cli->arena, &input, err);
    if (!code && push->is_series)
        return push_to_series(push, &input, err);
    if (code)
        return code;
    if (!push->is_unchecked)
        code = check_profile(push, &input, err);
    return code ? code : push_input(push, &input, err);
}

static enum err_code push_merged(struct push *push, struct err *err)
{
    struct cli *cli = push->cli;
    input_auto input = INPUT_NONE;
    enum err_code code = merge_inputs(cli, &push->arguments.texts, push->seconds, &input, err);
    return code ? code : push_input(push, &input, err);
}

/* Refuses options that only shares have. */
static enum err_code check_series_options(struct push *push, struct err *err)
{
    const struct settings_options *share = &push->settings;
    const struct upload_settings *settings = &share->settings;
    const struct {
        const char *name;
        bool is_set;
    } of_shares[] = {{"title", settings->title},
                     {"description", settings->description},
                     {"expires", settings->expires},
                     {"visibility", settings->visibility},
                     {"password-file", share->password_file},
                     {"label", share->labels.count > 0},
                     {"name", settings->filename},
                     {"markdown", share->output == SHARE_OUTPUT_MARKDOWN},
                     {"merge", push->is_merge},
                     {"open", push->is_opened}};
    for (size_t i = 0; push->is_series && i < sizeof(of_shares) / sizeof(of_shares[0]); i++) {
        if (of_shares[i].is_set)
            return cli_usage(push->cli, err,
                             "--%s applies to shares: it cannot be combined with --%s",
                             of_shares[i].name, push->series_labels.count ? "series" : "format");
    }
    return ERR_NONE;
}

static enum err_code run_push(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct push push = {
        .cli = cli,
        .settings = {.cli = cli},
        .arguments = {.cli = cli, .wanted = "give a profile to push, or - for standard input"}};
    cli_parse(&push_command, argc, argv, &push);
    client_auto client = NULL;
    enum err_code code = check_series_options(&push, err);
    if (code)
        return code;
    code = settings_options_finish(&push.settings, &push.arguments.texts, err);
    if (code)
        return code;
    code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    push.client = client;
    return push.is_merge ? push_merged(&push, err)
                         : arguments_each(&push.arguments, "pushed", push_one, &push, err);
}

const struct command push_command = {
    .name = "push",
    .summary = "upload profiles and print a link to each",
    .options = &options,
    .arguments = ARGUMENTS_FILES,
    .run = run_push,
};

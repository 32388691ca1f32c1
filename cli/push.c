#include "cli/cli.h"
#include "cli/client.h"
#include "cli/input.h"
#include "cli/link.h"
#include "cli/merge.h"
#include "cli/open.h"
#include "cli/settings_options.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"

#include <stdlib.h>

enum { OPTION_MERGE = 0x200, OPTION_NO_CHECK, OPTION_SECONDS, OPTION_OPEN };
enum { MAX_SECONDS = 24 * 3600 };

struct push {
    struct cli *cli;
    struct settings_options settings;
    struct cli_texts arguments;
    bool is_merge;
    bool is_unchecked;
    bool is_opened;
    int seconds;
};

static const struct argp_option options[] = {
    {"merge", OPTION_MERGE, NULL, 0, "Merge all profiles into one share", 0},
    {"seconds", OPTION_SECONDS, "N", 0, "Ask a pprof URL to measure for N seconds", 0},
    {"no-check", OPTION_NO_CHECK, NULL, 0, "Send without reading the profile first", 0},
    {"open", OPTION_OPEN, NULL, 0, "Open the link in a browser", 0},
    {"quiet", 'q', NULL, 0, "Say nothing but warnings and errors", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct push *push = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &push->settings;
        return 0;
    case OPTION_MERGE:
        push->is_merge = true;
        return 0;
    case OPTION_NO_CHECK:
        push->is_unchecked = true;
        return 0;
    case OPTION_OPEN:
        push->is_opened = true;
        return 0;
    case OPTION_SECONDS:
        push->seconds = atoi(text);
        if (push->seconds < 1 || push->seconds > MAX_SECONDS)
            argp_error(state, "--seconds takes a number from 1 to %d", MAX_SECONDS);
        return 0;
    case 'q':
        push->cli->terminal.is_quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        cli_texts_add(push->cli, &push->arguments, text);
        return 0;
    case ARGP_KEY_END:
        if (push->arguments.count == 0)
            argp_error(state, "name a profile to push, or - for standard input");
        if (push->is_merge && push->is_unchecked)
            argp_error(state, "--merge has to read the profiles: it does not go with --no-check");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE|-|URL...",
    .doc = "Upload profiles and print a link to each, one per line.\v"
           "Formats: pprof, folded stacks, perf script, Chrome cpuprofile, speedscope; plain, gzip "
           "or zstd. A URL is downloaded first.",
    .children = settings_options_children,
};

static enum err_code check(struct push *push, struct input *input, struct err *err)
{
    struct profile *profile;
    const char *format;
    enum err_code code = input_decode(input, &format, &profile, err);
    if (code) {
        size_t length = strlen(err->message);
        snprintf(err->message + length, sizeof(err->message) - length,
                 " (--no-check sends it all the same)");
        return code;
    }
    share_print_profile(push->cli, input, format, profile);
    input_warn(input, profile, &push->cli->terminal);
    profile_destroy(profile);
    return ERR_NONE;
}

static enum err_code push_input(struct push *push, struct client *client, const struct input *input,
                                struct err *err)
{
    struct upload_settings settings = push->settings.settings;
    json_auto_t *share = NULL;
    if (!settings.filename)
        settings.filename = input->filename;
    enum err_code code = upload_share(client, &push->cli->terminal, input, &settings, &share, err);
    if (code)
        return err_add(err, "%s", input->name);
    code = share_print_result(push->settings.output, share, err);
    share_print_keeping(push->cli, share, &settings);
    if (!code && push->is_opened)
        code = open_url(client_text(share, "url", ""), err);
    return code;
}

static enum err_code push_one(struct push *push, struct client *client, const char *argument,
                              struct err *err)
{
    struct cli *cli = push->cli;
    struct link link;
    if (link_is_url(argument) && link_parse(argument, cli->arena, &link))
        return err_set(err, ERR_INVALID, "%s is a Perfolio link already", argument);
    input_auto input = INPUT_NONE;
    enum err_code code =
        input_open(argument, push->seconds, &cli->terminal, cli->arena, &input, err);
    if (!code && !push->is_unchecked)
        code = check(push, &input, err);
    return code ? code : push_input(push, client, &input, err);
}

/* Goes on behind a file that fails; the first failure is the result. */
static enum err_code push_each(struct push *push, struct client *client, struct err *err)
{
    enum err_code result = ERR_NONE;
    size_t count = push->arguments.count;
    for (size_t i = 0; i < count; i++) {
        struct err each = {0};
        if (!push_one(push, client, push->arguments.texts[i], &each))
            continue;
        if (!result && count == 1)
            *err = each;
        else
            terminal_fail(&push->cli->terminal, "%s", each.message);
        if (!result)
            result = each.code;
    }
    if (result && count > 1)
        err_set(err, result, "not everything was pushed");
    return result;
}

static enum err_code push_merged(struct push *push, struct client *client, struct err *err)
{
    struct cli *cli = push->cli;
    input_auto input = INPUT_NONE;
    enum err_code code =
        merge_inputs(cli, push->arguments.texts, push->arguments.count, push->seconds, &input, err);
    return code ? code : push_input(push, client, &input, err);
}

static enum err_code run(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct push push = {.cli = cli, .settings = {.cli = cli}};
    cli_parse(&push_command, argc, argv, &push);
    client_auto client = NULL;
    enum err_code code = settings_options_finish(&push.settings, &push.arguments, err);
    if (!code)
        code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    return push.is_merge ? push_merged(&push, client, err) : push_each(&push, client, err);
}

const struct command push_command = {
    .name = "push",
    .summary = "upload profiles and print a link to each",
    .argp = &argp,
    .arguments = ARGUMENTS_FILES,
    .run = run,
};

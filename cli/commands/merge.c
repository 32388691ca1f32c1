#include "cli/commands/merge.h"

#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/save.h"
#include "cli/settings_options.h"
#include "cli/source.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/profile/merge.h"
#include "lib/profile/pprof/pprof.h"

#include <stdlib.h>

struct merge {
    struct cli *cli;
    struct settings_options settings;
    struct arguments arguments;
    const char *output;
    bool is_forced;
};

static const struct option_row rows[] = {
    {"output", 'o', "FILE", "Write a pprof file and upload nothing (- is standard output)",
     OPTION_TEXT(struct merge, output)},
    {"force", 'f', NULL, "Replace FILE if it exists", OPTION_FLAG(struct merge, is_forced)},
    {0},
};

static enum err_code check_arguments(void *values, struct err *err)
{
    const struct merge *merge = values;
    return merge->is_forced && !merge->output ? err_set(err, ERR_INVALID, "--force needs --output")
                                              : ERR_NONE;
}

static const struct option_part parts[] = {SETTINGS_OPTIONS_PART(offsetof(struct merge, settings)),
                                           ARGUMENTS_PART(offsetof(struct merge, arguments)),
                                           {0}};
static const struct option_table options = {
    .rows = rows,
    .check = check_arguments,
    .arguments = "FILE|-|URL|LINK...",
    .text = "Merge several profiles of one type: upload the result and print its link, or write it "
            "to a file.",
    .parts = parts,
};

static enum err_code decode_all(struct cli *cli, const struct cli_texts *arguments, int seconds,
                                struct profile **profiles, struct err *err)
{
    for (size_t i = 0; i < arguments->count; i++) {
        input_auto input = INPUT_NONE;
        enum err_code code = source_open(cli, arguments->texts[i], seconds, NULL, &input, err);
        if (code)
            return code;
        code = input_decode(&input, NULL, &profiles[i], err);
        if (code)
            return code;
        input_warn(&input, profiles[i], &cli->terminal);
    }
    return ERR_NONE;
}

static enum err_code encode_merged(struct cli *cli, const struct profile *profile,
                                   struct input *ret_input, struct err *err)
{
    buf_auto raw, packed;
    buf_init(&raw, INPUT_MAX_BYTES);
    buf_init(&packed, INPUT_MAX_BYTES);
    enum err_code code = pprof_encode(profile, &raw, err);
    if (code)
        return code;
    code = compress_gzip(buf_span(&raw), COMPRESS_GZIP_DEFAULT, &packed, err);
    if (code)
        return code;
    return input_from_bytes(buf_span(&packed), "merged.pb.gz", cli->arena, ret_input, err);
}

enum err_code merge_inputs(struct cli *cli, const struct cli_texts *arguments, int seconds,
                           struct input *ret_input, struct err *err)
{
    size_t count = arguments->count;
    struct profile **profiles = arena_new(cli->arena, struct profile *, count);
    struct profile *merged = NULL;
    enum err_code code = decode_all(cli, arguments, seconds, profiles, err);
    if (!code)
        code = merge_profiles((const struct profile *const *)profiles, count, NULL, &merged, err);
    if (!code)
        code = encode_merged(cli, merged, ret_input, err);
    if (!code) {
        terminal_note(&cli->terminal, "merged %zu profiles", count);
        share_print_profile(cli, ret_input, "pprof", merged);
    }
    profile_destroy(merged);
    for (size_t i = 0; i < count; i++)
        profile_destroy(profiles[i]);
    return code;
}

static enum err_code write_output(const struct merge *merge, struct input *input, struct err *err)
{
    struct span bytes;
    enum err_code code = input_map(input, &bytes, err);
    return code ? code : save_bytes(bytes, merge->output, merge->is_forced, err);
}

static enum err_code push_output(struct merge *merge, const struct input *input, struct err *err)
{
    struct cli *cli = merge->cli;
    client_auto client = NULL;
    json_auto_t *share = NULL;
    struct upload_settings *settings = &merge->settings.settings;
    if (!settings->filename)
        settings->filename = input->filename;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    code = upload_share(client, &cli->terminal, input, settings, &share, err);
    if (code)
        return code;
    code = share_print_result(cli, client, merge->settings.output, share, settings, err);
    share_print_details(cli, share, settings);
    return code;
}

static enum err_code run_merge(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct merge merge = {.cli = cli,
                          .settings = {.cli = cli},
                          .arguments = {.cli = cli, .wanted = "give the profiles to merge"}};
    cli_parse(&merge_command, argc, argv, &merge);
    input_auto input = INPUT_NONE;
    enum err_code code = settings_options_finish(&merge.settings, &merge.arguments.texts, err);
    if (code)
        return code;
    code = merge_inputs(cli, &merge.arguments.texts, 0, &input, err);
    if (code)
        return code;
    return merge.output ? write_output(&merge, &input, err) : push_output(&merge, &input, err);
}

const struct command merge_command = {
    .name = "merge",
    .summary = "merge several profiles into one",
    .options = &options,
    .arguments = ARGUMENTS_FILES,
    .run = run_merge,
};

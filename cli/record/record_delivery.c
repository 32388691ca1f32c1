#include "cli/record/record_delivery.h"

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/commands/open.h"
#include "cli/input.h"
#include "cli/record/local_names.h"
#include "cli/record/record_options.h"
#include "cli/record/record_output.h"
#include "cli/record/unsymbolized_code.h"
#include "cli/save.h"
#include "cli/share_print.h"
#include "cli/value.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/pprof/pprof.h"
#include "lib/profile/profile.h"

enum { PROFILE_MAX_BYTES = 1 << 30, TITLE_BYTES = 120 };

static enum err_code symbolize_profile(const struct record_delivery *delivery,
                                       struct profile *profile, struct arena *arena,
                                       struct profile *ret_named, struct err *err)
{
    struct local_names_counts counts = {0};
    char text[VALUE_TEXT_BYTES];
    *ret_named = *profile;
    if (!delivery->files)
        return ERR_NONE;
    struct local_names *names = local_names_create(
        delivery->options->cli, delivery->files,
        delivery->options->has_progress && !delivery->options->cli->terminal.is_error_terminal
            ? LOCAL_NAMES_REPORTED
            : LOCAL_NAMES_ONCE);
    const enum err_code code =
        local_names_symbolize(names, profile, arena, ret_named, &counts, err);
    local_names_destroy(names);
    if (code && code != ERR_CANCELLED) {
        *ret_named = *profile;
        terminal_warn(&delivery->options->cli->terminal, "functions are not named: %s",
                      err->message);
        return ERR_NONE;
    }
    if (code)
        return code;
    if (counts.unknown_count)
        terminal_note(&delivery->options->cli->terminal, "%u of %s %s no name on this machine%s",
                      counts.unknown_count,
                      value_counted(counts.address_count, "address", "addresses", text),
                      counts.unknown_count == 1 ? "has" : "have",
                      delivery->options->is_shared ? "; the server looks for them" : "");
    return ERR_NONE;
}

/* Converts strings to UTF-8. Names may be any bytes, and readers of protobuf refuse a file with one
 * invalid string. */
static void make_texts_utf8(struct profile *profile, struct arena *arena)
{
    struct span *strings = arena_new(arena, struct span, profile->string_count);
    for (uint32_t i = 0; i < profile->string_count; i++)
        strings[i] = span_make_utf8(profile->strings[i], arena);
    profile->strings = strings;
}

static enum err_code encode_gzip(const struct profile *profile, struct buf *output, struct err *err)
{
    buf_auto raw;
    buf_init(&raw, PROFILE_MAX_BYTES);
    const enum err_code code = pprof_encode(profile, &raw, err);
    return code ? code : compress_gzip(buf_span(&raw), COMPRESS_GZIP_DEFAULT, output, err);
}

static const char *title_of(const struct record_delivery *delivery)
{
    buf_auto text;
    buf_init(&text, 4096);
    if (delivery->options->settings.title)
        return delivery->options->settings.title;
    if (delivery->options->is_all)
        return "all processes";
    if (delivery->options->target_count)
        terminal_append_clean(&text, span_text(delivery->target_name));
    for (char **word = delivery->options->command; word && *word; word++) {
        if (text.size)
            buf_append_byte(&text, ' ');
        terminal_append_clean(&text, span_text(*word));
    }
    if (text.size == 0)
        return NULL;
    /* The server accepts 200 characters; a shorter title is easier to read. */
    const size_t size = text.size < TITLE_BYTES ? text.size : TITLE_BYTES;
    char *title = arena_strndup(delivery->options->cli->arena, text.data, size);
    return span_is_utf8(span_text(title)) ? title : NULL;
}

/* ret_is_sent: the share exists, even if a later step fails. */
static enum err_code share_profile(const struct record_delivery *delivery, struct span bytes,
                                   bool *ret_is_sent, struct err *err)
{
    struct cli *cli = delivery->options->cli;
    client_auto client = NULL;
    input_auto input = INPUT_NONE;
    json_auto_t *response = NULL;
    struct upload_settings settings = delivery->options->settings;
    settings.title = title_of(delivery);
    settings.filename = RECORD_DEFAULT_FILE;
    *ret_is_sent = false;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    code = input_from_bytes(bytes, RECORD_DEFAULT_FILE, cli->arena, &input, err);
    if (code)
        return code;
    code = upload_share(client, &cli->terminal, &input, &settings, &response, err);
    if (code)
        return code;
    *ret_is_sent = true;
    code = share_print_result(cli, client,
                              delivery->options->is_json ? SHARE_OUTPUT_JSON : SHARE_OUTPUT_URL,
                              response, &settings, err);
    share_print_details(cli, response, &settings);
    if (code)
        return code;
    if (delivery->options->is_opened)
        return open_url(client_text(response, "url", ""), err);
    return ERR_NONE;
}

static enum err_code deliver_profile(const struct record_delivery *delivery, struct span bytes,
                                     struct err *err)
{
    struct cli *cli = delivery->options->cli;
    struct err of_share;
    const bool is_file = delivery->options->output && strcmp(delivery->options->output, "-") != 0;
    const enum err_code written = delivery->options->output
                                      ? save_bytes(bytes, delivery->options->output, true, err)
                                      : ERR_NONE;
    bool is_saved = is_file && !written;
    if (is_saved)
        terminal_note(&cli->terminal, "written to %s", delivery->options->output);
    if (written && written != ERR_CANCELLED)
        is_saved = record_output_keep(&cli->terminal, cli->arena, bytes);
    bool is_sent = false;
    if (!delivery->options->is_shared || !share_profile(delivery, bytes, &is_sent, &of_share))
        return written;
    if (!is_saved && !is_sent)
        record_output_keep(&cli->terminal, cli->arena, bytes);
    if (written)
        terminal_warn(&cli->terminal, "%s", of_share.message);
    else
        *err = of_share;
    return err->code;
}

enum err_code record_delivery_finish(const struct record_delivery *delivery,
                                     struct profile *profile, struct err *err)
{
    arena_auto arena = arena_create();
    struct profile named;
    buf_auto bytes;
    buf_init(&bytes, PROFILE_MAX_BYTES);
    unsymbolized_code_print(&delivery->options->cli->terminal, profile);
    enum err_code code = symbolize_profile(delivery, profile, arena, &named, err);
    if (code)
        return code;
    make_texts_utf8(&named, arena);
    code = encode_gzip(&named, &bytes, err);
    if (code)
        return code;
    return deliver_profile(delivery, buf_span(&bytes), err);
}

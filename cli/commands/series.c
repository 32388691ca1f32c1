#include "cli/commands/series.h"

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/value.h"
#include "lib/base/arena.h"
#include "lib/base/compress.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/profile/batch/batch_from_profile.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/profile.h"

#include <inttypes.h>
#include <string.h>

enum {
    BODY_MAX_BYTES = 8 << 20, /* limit of the server */
    COMPRESSION_LEVEL = 3,
    EXPANDED_MAX_BYTES = 64 << 20, /* a compressed batch that expands beyond it is not decoded */
    PATH_MAX_BYTES = 128 << 10,
    MEBIBYTE = 1 << 20
};

/* The properties of the input, which are determined before it is sent. */
struct content {
    bool is_otlp;
    enum otlp_encoding encoding;
    enum compress_method compression;
    uint32_t profile_count; /* of an OTLP batch */
    bool has_time;          /* every profile has one */
};

/* ---- properties of the input ---- */

static bool begins_as_json(struct span bytes)
{
    bytes = span_trim(bytes);
    return bytes.size && bytes.data[0] == '{';
}

/* A batch has no magic number, so it is detected by decoding it. */
static enum err_code look_at_otlp(struct span bytes, struct content *content, struct err *err)
{
    const struct otlp_options options = {.now_ns = 1}; /* marks profiles without a time */
    struct otlp_result result;
    struct batch *batch;
    content->encoding = begins_as_json(bytes) ? OTLP_JSON : OTLP_PROTOBUF;
    enum err_code code = otlp_decode(bytes, content->encoding, &options, &batch, &result, err);
    if (code)
        return code;
    content->profile_count = result.profile_count;
    content->has_time = true;
    for (uint32_t i = 0; i < batch->profile_count; i++)
        content->has_time &= batch->profiles[i].time_ns != options.now_ns;
    batch_destroy(batch);
    return result.profile_count + result.rejected_profiles
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "the batch contains no profile");
}

static enum err_code expand_content(struct input *input, struct content *content,
                                    struct buf *expanded, struct span *ret_bytes, struct err *err)
{
    enum err_code code = input_map(input, ret_bytes, err);
    if (code)
        return code;
    content->compression = compress_sniff(*ret_bytes);
    if (content->compression == COMPRESS_NONE)
        return ERR_NONE;
    code = compress_expand(content->compression, *ret_bytes, expanded, err);
    *ret_bytes = buf_span(expanded);
    return code;
}

static enum err_code look_at_profile(struct cli *cli, struct input *input, struct content *content,
                                     struct err *err)
{
    struct profile *profile;
    enum err_code code = input_decode(input, NULL, &profile, err);
    if (code)
        return code;
    /* The server recognizes a repeated profile without a time only by the batch id. */
    content->has_time = batch_own_time_ns(profile) != 0;
    input_warn(input, profile, &cli->terminal);
    profile_destroy(profile);
    return ERR_NONE;
}

static enum err_code detect_content(struct cli *cli, struct input *input,
                                    const struct series_settings *settings, struct content *content,
                                    struct err *err)
{
    struct err otlp_err = {0};
    struct span bytes;
    buf_auto expanded;
    buf_init(&expanded, EXPANDED_MAX_BYTES);
    if (settings->is_unchecked && settings->format != SERIES_FORMAT_OTLP)
        return ERR_NONE;
    enum err_code code = ERR_INVALID;
    if (settings->format != SERIES_FORMAT_OTLP)
        code = look_at_profile(cli, input, content, err);
    if (!code || settings->format == SERIES_FORMAT_PROFILE)
        return code;
    content->is_otlp = true;
    code = expand_content(input, content, &expanded, &bytes, &otlp_err);
    if (!code)
        code = look_at_otlp(bytes, content, &otlp_err);
    if (!code)
        return ERR_NONE;
    if (settings->format == SERIES_FORMAT_OTLP) {
        *err = otlp_err;
        return code;
    }
    return err->code; /* the error of decoding it as a profile */
}

/* ---- responses ---- */

static enum err_code print_result(const struct cli *cli, const struct input *input, json_t *receipt,
                                  bool is_json, const char *text, struct err *err)
{
    if (!is_json && cli->terminal.is_quiet)
        return ERR_NONE;
    if (is_json) {
        json_dumpf(receipt, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    } else {
        terminal_print_clean(stdout, span_text(input->name));
        printf(": %s", text);
    }
    putchar('\n');
    return cli_flush(err);
}

static enum err_code print_profile_result(struct cli *cli, const struct input *input,
                                          const struct http_client_response *response, bool is_json,
                                          struct err *err)
{
    json_auto_t *receipt = json_loadb((const char *)response->body.data, response->body.size,
                                      JSON_REJECT_DUPLICATES, NULL);
    const json_int_t samples = json_integer_value(json_object_get(receipt, "samples"));
    if (!json_is_object(receipt) || samples < 0)
        return err_set(err, ERR_NETWORK,
                       "the server's response is invalid: is it a Perfolio server?");
    char count[VALUE_TEXT_BYTES];
    const char *text =
        json_is_true(json_object_get(receipt, "duplicate"))
            ? "known already, nothing was added (it was sent within 24 hours, even if it has "
              "been deleted since)"
            : arena_printf(cli->arena, "%s values added", value_count(samples, count));
    return print_result(cli, input, receipt, is_json, text, err);
}

static bool read_export_response(const struct http_client_response *response,
                                 enum otlp_encoding encoding, uint64_t *ret_rejected,
                                 char *ret_message)
{
    const struct span body = buf_span(&response->body);
    if (encoding == OTLP_PROTOBUF)
        return otlp_read_response(body, ret_rejected, ret_message);
    json_auto_t *receipt = json_loadb((const char *)body.data, body.size, 0, NULL);
    const json_t *partial = json_object_get(receipt, "partialSuccess");
    *ret_rejected = 0;
    span_parse_u64(span_text(client_text(partial, "rejectedProfiles", "0")), ret_rejected);
    snprintf(ret_message, OTLP_MESSAGE_BYTES, "%s", client_text(partial, "errorMessage", ""));
    return json_is_object(receipt);
}

static enum err_code print_otlp_result(struct cli *cli, const struct input *input,
                                       const struct content *content,
                                       const struct http_client_response *response, bool is_json,
                                       struct err *err)
{
    uint64_t rejected;
    char message[OTLP_MESSAGE_BYTES] = "";
    if (!read_export_response(response, content->encoding, &rejected, message))
        return err_set(err, ERR_NETWORK,
                       "the server's response is invalid: does it take OTLP profiles?");
    const uint64_t all = content->profile_count;
    char text[VALUE_TEXT_BYTES];
    if (rejected || message[0])
        terminal_warn(&cli->terminal, "%s: %s left out: %s", input->name,
                      value_counted(rejected, "profile was", "profiles were", text), message);
    json_auto_t *receipt = json_pack("{s:I,s:I,s:s}", "profiles", (json_int_t)all, "rejected",
                                     (json_int_t)rejected, "message", message);
    return print_result(
        cli, input, receipt, is_json,
        arena_printf(cli->arena, "%s sent", value_counted(all, "profile", "profiles", text)), err);
}

/* ---- sending ---- */

/* Go's profiles of blocking and of mutexes have the same types: contentions and delay. Only the
 * path of its endpoint distinguishes them. NULL: the server derives the name from the types. */
static const char *name_of_endpoint(const char *url)
{
    static const char *const names[] = {"block", "mutex"};
    static const char folder[] = "/debug/pprof/";
    const char *at = strstr(url, "://") ? strstr(url, folder) : NULL;
    for (size_t i = 0; at && i < sizeof(names) / sizeof(names[0]); i++) {
        const char *end = at + strlen(folder) + strlen(names[i]);
        if (strncmp(at + strlen(folder), names[i], strlen(names[i])) == 0 &&
            (*end == '\0' || *end == '?' || *end == '#'))
            return names[i];
    }
    return NULL;
}

static enum err_code make_path(const struct series_settings *settings, const struct input *input,
                               bool is_otlp, struct buf *path, struct err *err)
{
    const char *name = is_otlp ? NULL : name_of_endpoint(input->name);
    buf_append_text(path, is_otlp ? "/v1development/profiles" : "/api/v1/profiles");
    for (size_t i = 0; i < settings->label_count && !is_otlp; i++)
        client_append_parameter(path, "label", settings->labels[i]);
    if (name)
        client_append_parameter(path, "name", name);
    buf_append_byte(path, 0);
    return buf_failed(path) ? err_set(err, ERR_TOO_LARGE, "the labels are too long together")
                            : ERR_NONE;
}

static void add_fields(struct client_request *request, const struct content *content)
{
    const char *type =
        content->encoding == OTLP_JSON ? "application/json" : "application/x-protobuf";
    client_request_add(request, "Content-Type",
                       content->is_otlp ? type : "application/octet-stream");
    if (content->is_otlp && content->compression != COMPRESS_NONE)
        client_request_add(request, "Content-Encoding", compress_name(content->compression));
}

/* Reads the error from a protobuf Status, which client_send does not understand. */
static enum err_code explain(const struct content *content,
                             const struct http_client_response *response, struct err *err)
{
    char message[OTLP_MESSAGE_BYTES] = "";
    if (content->is_otlp && content->encoding == OTLP_PROTOBUF && response->status >= 400 &&
        otlp_read_status(buf_span(&response->body), message) && message[0])
        err_set(err, err->code, "%s", message);
    return err->code;
}

static enum err_code send_content(struct cli *cli, struct client *client, const struct input *input,
                                  const char *path, const struct content *content,
                                  struct http_client_response *response, struct err *err)
{
    struct progress progress = {
        .terminal = &cli->terminal, .name = input->filename, .total = input->bytes};
    struct client_request request;
    char id[DIGEST_ID_BYTES];
    client_request_init(&request, "POST", path);
    request.has_many_retries = request.is_repeatable = true;
    request.http.body_kind = HTTP_CLIENT_BODY_FILE;
    request.http.body_fd = input->fd;
    request.http.body_bytes = input->bytes;
    progress_of_upload(&progress, &request.http);
    add_fields(&request, content);
    digest_random_id(id);
    if (!content->has_time)
        client_request_add(&request, "Perfolio-Batch-Id", id);
    enum err_code code = client_send(client, &request, response, err);
    terminal_progress_end(&cli->terminal);
    return code ? explain(content, response, err) : ERR_NONE;
}

/* Replaces a file that is larger than a request may be by its compressed bytes. */
static enum err_code compress_input(struct cli *cli, struct input *input, struct err *err)
{
    struct span bytes;
    struct input compressed;
    buf_auto zstd;
    buf_init(&zstd, BODY_MAX_BYTES);
    enum err_code code = input_map(input, &bytes, err);
    if (code)
        return code;
    struct err ignored;
    if (compress_sniff(bytes) != COMPRESS_NONE ||
        compress_zstd(bytes, COMPRESSION_LEVEL, &zstd, &ignored))
        return err_set(
            err, ERR_TOO_LARGE,
            "the file has %.1f MiB; the limit for a series is %d MiB, compressed: record "
            "for a shorter time",
            (double)input->bytes / MEBIBYTE, BODY_MAX_BYTES / MEBIBYTE);
    code = input_from_bytes(buf_span(&zstd), input->filename, cli->arena, &compressed, err);
    if (code)
        return code;
    compressed.name = input->name;
    input_close(input);
    *input = compressed;
    return ERR_NONE;
}

enum err_code series_push(struct cli *cli, struct client *client, struct input *input,
                          const struct series_settings *settings, struct err *err)
{
    struct content content = {0};
    buf_auto path;
    http_client_response_auto response;
    buf_init(&path, PATH_MAX_BYTES);
    http_client_response_init(&response);
    enum err_code code = ERR_NONE;
    if (input->bytes > BODY_MAX_BYTES)
        code = compress_input(cli, input, err);
    if (code)
        return code;
    code = detect_content(cli, input, settings, &content, err);
    if (code)
        return code;
    code = make_path(settings, input, content.is_otlp, &path, err);
    if (code)
        return code;
    if (content.is_otlp && settings->label_count)
        terminal_warn(&cli->terminal, "%s has labels of its own: --series adds none to it",
                      input->name);
    code = send_content(cli, client, input, (const char *)path.data, &content, &response, err);
    if (code)
        return code;
    return content.is_otlp
               ? print_otlp_result(cli, input, &content, &response, settings->is_json, err)
               : print_profile_result(cli, input, &response, settings->is_json, err);
}

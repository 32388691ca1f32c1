#include "cli/upload.h"

#include "cli/client.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/link.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/upload_state.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"

#include <stdlib.h>

enum {
    MAX_QUERY_BYTES = 128 << 10,
    COMPLETE_TRIES = 30, /* while another request is completing the same upload */
    COMPLETE_PAUSE_MS = 1000,
    SEND_ROUNDS = 3, /* while the server reports lost parts */
    MAX_PART_COUNT = 1 << 20,
};

#define RESUME_TEXT "the server stores the received parts for a while: push %s again to continue"

/* The state of an upload in parts. */
struct parts {
    struct client *client;
    struct terminal *terminal;
    const struct input *input;
    struct arena *arena;
    const char *path; /* path of the API for uploads in parts */
    struct upload_state state;
    uint64_t part_bytes;
    uint64_t part_count;
    bool *is_received;
    uint64_t sent_before; /* bytes of the completed parts */
};

void upload_append_query(struct buf *text, const struct upload_settings *settings)
{
    client_append_parameter(text, "title", settings->title);
    client_append_parameter(text, "description", settings->description);
    client_append_parameter(text, "expires", settings->expires);
    client_append_parameter(text, "visibility", settings->visibility);
    client_append_parameter(text, "filename", settings->filename);
    for (size_t i = 0; i < settings->label_count; i++)
        client_append_parameter(text, "label", settings->labels[i]);
}

static enum err_code make_path(struct buf *path, const char *start,
                               const struct upload_settings *settings, struct err *err)
{
    buf_append_text(path, start);
    upload_append_query(path, settings);
    buf_append_byte(path, 0);
    return buf_failed(path) ? err_set(err, ERR_TOO_LARGE,
                                      "title, description and labels are too "
                                      "long together")
                            : ERR_NONE;
}

static void add_password(struct client_request *request, const struct upload_settings *settings)
{
    if (settings->password)
        client_request_add(request, "X-Perfolio-Password", settings->password);
}

/* Requests of an upload are retried many times, because all bytes would have to be sent again after
 * a failure. */
static void request_init(struct client_request *request, const char *method, const char *path)
{
    client_request_init(request, method, path);
    request->has_many_retries = true;
}

/* ret_key must live as long as the request. */
static void make_repeatable(struct client_request *request, char ret_key[DIGEST_ID_BYTES])
{
    digest_random_id(ret_key);
    client_request_add(request, "Idempotency-Key", ret_key);
    request->is_repeatable = true;
}

static enum err_code post_whole(struct client *client, struct terminal *terminal,
                                const struct input *input, const struct upload_settings *settings,
                                json_t **ret_share, struct err *err)
{
    buf_auto path;
    buf_init(&path, MAX_QUERY_BYTES);
    enum err_code code = make_path(&path, "/api/v1/shares", settings, err);
    if (code)
        return code;
    struct progress progress = {
        .terminal = terminal, .name = input->filename, .total = input->bytes};
    struct client_request request;
    char key[DIGEST_ID_BYTES];
    request_init(&request, "POST", (const char *)path.data);
    make_repeatable(&request, key);
    request.http.body_kind = HTTP_CLIENT_BODY_FILE;
    request.http.body_fd = input->fd;
    request.http.body_bytes = input->bytes;
    progress_of_upload(&progress, &request.http);
    client_request_add(&request, "Content-Type", "application/octet-stream");
    add_password(&request, settings);
    return client_send_json(client, &request, ret_share, err);
}

static void add_upload_token(struct client_request *request, const struct parts *parts)
{
    if (parts->state.token[0])
        client_request_add(request, "X-Perfolio-Upload-Token", parts->state.token);
}

/* Part sizes and counts come from the server and must cover the input. */
static enum err_code take_layout(struct parts *parts, const json_t *response, struct err *err)
{
    json_int_t part_bytes = json_integer_value(json_object_get(response, "part_bytes"));
    json_int_t part_count = json_integer_value(json_object_get(response, "part_count"));
    uint64_t bytes = parts->input->bytes;
    if (part_bytes <= 0 || part_count <= 0 || part_count > MAX_PART_COUNT ||
        (bytes + (uint64_t)part_bytes - 1) / (uint64_t)part_bytes != (uint64_t)part_count)
        return err_set(err, ERR_NETWORK, "the server returned an invalid upload plan");
    parts->part_bytes = (uint64_t)part_bytes;
    parts->part_count = (uint64_t)part_count;
    parts->is_received = arena_new(parts->arena, bool, parts->part_count);
    return ERR_NONE;
}

static uint64_t size_of_part(const struct parts *parts, uint64_t part)
{
    uint64_t start = part * parts->part_bytes, left = parts->input->bytes - start;
    return left < parts->part_bytes ? left : parts->part_bytes;
}

/* Queries which parts of the stored upload the server has. ERR_NOT_FOUND: there is no upload that
 * can be resumed. */
static enum err_code query_parts(struct parts *parts, struct err *err)
{
    struct client_request request;
    json_auto_t *response = NULL;
    const json_t *number;
    size_t i;
    parts->sent_before = 0;
    if (!parts->state.id)
        return ERR_NOT_FOUND;
    request_init(&request, "GET",
                 arena_printf(parts->arena, "%s/%s", parts->path, parts->state.id));
    add_upload_token(&request, parts);
    enum err_code code = client_send_json(parts->client, &request, &response, err);
    if (code == ERR_GONE || code == ERR_UNAUTHENTICATED || code == ERR_FORBIDDEN)
        return ERR_NOT_FOUND; /* expired, or started by another account */
    if (code)
        return code;
    code = take_layout(parts, response, err);
    if (code)
        return ERR_NOT_FOUND;
    if (client_text(response, "share_id", "")[0]) { /* completed, but the response was lost */
        memset(parts->is_received, true, parts->part_count);
        return ERR_NONE;
    }
    json_array_foreach(json_object_get(response, "parts_received"), i, number)
    {
        json_int_t part = json_integer_value(number);
        if (!json_is_integer(number) || part < 0 || (uint64_t)part >= parts->part_count ||
            parts->is_received[part])
            continue;
        parts->is_received[part] = true;
        parts->sent_before += size_of_part(parts, (uint64_t)part);
    }
    return ERR_NONE;
}

static enum err_code begin_upload(struct parts *parts, const char *filename, struct err *err)
{
    json_auto_t *response = NULL, *body = json_object();
    json_object_set_new(body, "size", json_integer((json_int_t)parts->input->bytes));
    if (filename)
        json_object_set_new(body, "filename", json_string(filename));
    char *text = json_dumps(body, JSON_COMPACT);
    struct client_request request;
    char key[DIGEST_ID_BYTES];
    request_init(&request, "POST", parts->path);
    make_repeatable(&request, key);
    request.http.body_kind = HTTP_CLIENT_BODY_BYTES;
    request.http.body = span_text(text);
    client_request_add(&request, "Content-Type", "application/json");
    enum err_code code = client_send_json(parts->client, &request, &response, err);
    free(text);
    if (code)
        return code;
    code = take_layout(parts, response, err);
    if (code)
        return code;
    const char *id = client_text(response, "id", "");
    if (!id[0] || strpbrk(id, "/?#"))
        return err_set(err, ERR_NETWORK, "the server returned an invalid upload id");
    parts->state.id = arena_strdup(parts->arena, id);
    parts->state.token = arena_strdup(parts->arena, client_text(response, "upload_token", ""));
    struct err state_err = {0};
    if (upload_state_save(&parts->state, &state_err))
        terminal_warn(parts->terminal, "the upload cannot be resumed if it breaks off: %s",
                      state_err.message);
    return ERR_NONE;
}

static enum err_code put_part(struct parts *parts, uint64_t part, struct err *err)
{
    http_client_response_auto response;
    http_client_response_init(&response);
    struct progress progress = {.terminal = parts->terminal,
                                .name = parts->input->filename,
                                .before = parts->sent_before,
                                .total = parts->input->bytes};
    struct client_request request;
    request_init(&request, "PUT",
                 arena_printf(parts->arena, "%s/%s/parts/%llu", parts->path, parts->state.id,
                              (unsigned long long)part));
    request.http.body_kind = HTTP_CLIENT_BODY_FILE;
    request.http.body_fd = parts->input->fd;
    request.http.body_offset = part * parts->part_bytes;
    request.http.body_bytes = size_of_part(parts, part);
    progress_of_upload(&progress, &request.http);
    client_request_add(&request, "Content-Type", "application/octet-stream");
    add_upload_token(&request, parts);
    enum err_code code = client_send(parts->client, &request, &response, err);
    if (code)
        return code;
    parts->sent_before += request.http.body_bytes;
    return ERR_NONE;
}

/* From now on an interrupt prints how to resume the upload. */
static void set_resume_text(const struct parts *parts)
{
    buf_auto name;
    buf_init(&name, MAX_QUERY_BYTES);
    terminal_append_clean(&name, span_text(parts->input->name));
    buf_append_byte(&name, 0);
    if (!parts->terminal->is_quiet && !buf_failed(&name))
        interrupt_set_text(arena_printf(parts->arena, RESUME_TEXT "\n", (const char *)name.data));
}

static enum err_code resume_or_begin(struct parts *parts, const char *filename, struct err *err)
{
    enum err_code code = query_parts(parts, err);
    if (code == ERR_NOT_FOUND)
        code = begin_upload(parts, filename, err);
    else if (!code && parts->sent_before)
        terminal_note(parts->terminal, "resuming an interrupted upload (%.0f%%)",
                      100 * (double)parts->sent_before / (double)parts->input->bytes);
    if (code)
        return code;
    set_resume_text(parts);
    return ERR_NONE;
}

static enum err_code put_missing(struct parts *parts, struct err *err)
{
    for (uint64_t part = 0; part < parts->part_count; part++) {
        enum err_code code = parts->is_received[part] ? ERR_NONE : put_part(parts, part, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}

/* Whether the server dropped parts that it had received, because its storage damaged them. */
static bool has_lost_parts(struct parts *parts)
{
    struct err ignored;
    uint64_t lost_count = 0;
    if (query_parts(parts, &ignored))
        return false;
    for (uint64_t part = 0; part < parts->part_count; part++)
        lost_count += !parts->is_received[part];
    if (lost_count)
        terminal_note(parts->terminal,
                      "the server has lost %llu of %llu parts of the upload: sending them again",
                      (unsigned long long)lost_count, (unsigned long long)parts->part_count);
    return lost_count > 0;
}

static void end_parts(const struct parts *parts, enum err_code code)
{
    /* Keep the state of an upload that can be resumed, but not of one that the server refused
     * permanently. */
    if (!code || code == ERR_INVALID || code == ERR_UNSUPPORTED || code == ERR_TOO_LARGE ||
        code == ERR_NOT_FOUND || code == ERR_GONE)
        upload_state_forget(&parts->state);
    else if (parts->state.id)
        terminal_note(parts->terminal, RESUME_TEXT, parts->input->name);
    interrupt_set_text(NULL);
}

typedef enum err_code complete_parts(struct parts *parts, const void *context,
                                     json_t **ret_response, struct err *err);

static enum err_code send_parts(struct parts *parts, const char *filename, complete_parts *complete,
                                const void *context, json_t **ret_response, struct err *err)
{
    enum err_code code = resume_or_begin(parts, filename, err);
    for (int round = 1; !code; round++) {
        code = put_missing(parts, err);
        if (!code)
            code = complete(parts, context, ret_response, err);
        if (code != ERR_CONFLICT || round == SEND_ROUNDS || !has_lost_parts(parts))
            break;
        code = ERR_NONE;
    }
    end_parts(parts, code);
    return code;
}

/* Repeatable: if the upload is complete already, the server returns its share. */
static enum err_code complete_share(struct parts *parts, const void *context, json_t **ret_share,
                                    struct err *err)
{
    const struct upload_settings *settings = context;
    buf_auto path;
    buf_init(&path, MAX_QUERY_BYTES);
    enum err_code code =
        make_path(&path, arena_printf(parts->arena, "/api/v1/uploads/%s/complete", parts->state.id),
                  settings, err);
    struct client_request request;
    request_init(&request, "POST", (const char *)path.data);
    request.is_repeatable = true;
    add_upload_token(&request, parts);
    add_password(&request, settings);
    for (int i = 0; !code && i < COMPLETE_TRIES; i++) {
        code = client_send_json(parts->client, &request, ret_share, err);
        /* Without Retry-After the conflict means that parts are missing. */
        if (code != ERR_CONFLICT || err->retry_after_s == 0 || i + 1 == COMPLETE_TRIES)
            return code;
        clock_sleep_ms(COMPLETE_PAUSE_MS);
        code = ERR_NONE;
    }
    return code;
}

/* The API path of a debug file and its name on the server. */
struct debuginfo_target {
    const char *path;
    const char *file;
};

/* upload_id may be NULL. */
static enum err_code make_debuginfo_path(struct buf *path, const struct debuginfo_target *target,
                                         const char *upload_id, struct err *err)
{
    buf_append_text(path, target->path);
    client_append_parameter(path, "file", target->file);
    client_append_parameter(path, "upload", upload_id);
    buf_append_byte(path, 0);
    return buf_failed(path) ? err_set(err, ERR_TOO_LARGE, "the name %s is too long", target->file)
                            : ERR_NONE;
}

static enum err_code complete_debuginfo(struct parts *parts, const void *context,
                                        json_t **ret_response, struct err *err)
{
    struct client_request request;
    buf_auto path;
    buf_init(&path, MAX_QUERY_BYTES);
    enum err_code code = make_debuginfo_path(&path, context, parts->state.id, err);
    request_init(&request, "POST", (const char *)path.data);
    return code ? code : client_send_json(parts->client, &request, ret_response, err);
}

static enum err_code post_debuginfo(struct client *client, const struct input *input,
                                    const struct debuginfo_target *target,
                                    struct progress *progress, json_t **ret_response,
                                    struct err *err)
{
    struct client_request request;
    buf_auto path;
    buf_init(&path, MAX_QUERY_BYTES);
    enum err_code code = make_debuginfo_path(&path, target, NULL, err);
    request_init(&request, "POST", (const char *)path.data);
    request.http.body_kind = HTTP_CLIENT_BODY_FILE;
    request.http.body_fd = input->fd;
    request.http.body_bytes = input->bytes;
    request.is_repeatable = true; /* the request is idempotent */
    progress_of_upload(progress, &request.http);
    client_request_add(&request, "Content-Type", "application/octet-stream");
    return code ? code : client_send_json(client, &request, ret_response, err);
}

enum err_code upload_debuginfo(struct client *client, struct terminal *terminal,
                               const struct input *input, const char *path, const char *file,
                               json_t **ret_response, struct err *err)
{
    arena_auto arena = arena_create();
    const struct debuginfo_target target = {.path = path, .file = file};
    struct progress progress = {
        .terminal = terminal, .name = input->filename, .total = input->bytes};
    struct parts parts = {.client = client,
                          .terminal = terminal,
                          .input = input,
                          .arena = arena,
                          .path = "/api/v1/debuginfo/uploads"};
    enum err_code code;
    if (input->bytes <= UPLOAD_PART_BYTES) {
        code = post_debuginfo(client, input, &target, &progress, ret_response, err);
    } else {
        code = upload_state_find(arena_printf(arena, "%s debuginfo", client_base(client)), input,
                                 arena, &parts.state, err);
        if (!code)
            code =
                send_parts(&parts, input->filename, complete_debuginfo, &target, ret_response, err);
    }
    terminal_progress_end(terminal);
    return code;
}

/* Checks id and link, which are printed, opened and inserted into other links unchanged. */
static bool is_usable(const json_t *share)
{
    arena_auto arena = arena_create();
    struct link link;
    const char *id = client_text(share, "id", ""), *url = client_text(share, "url", "");
    for (const char *at = url; *at; at++) {
        if (*at <= ' ' || *at > '~')
            return false;
    }
    return link_is_url(url) && link_parse(id, arena, &link) && !link.base && !link.is_diff;
}

enum err_code upload_share(struct client *client, struct terminal *terminal,
                           const struct input *input, const struct upload_settings *settings,
                           json_t **ret_share, struct err *err)
{
    enum err_code code;
    if (input->bytes <= UPLOAD_PART_BYTES) {
        code = post_whole(client, terminal, input, settings, ret_share, err);
    } else {
        arena_auto arena = arena_create();
        struct parts parts = {.client = client,
                              .terminal = terminal,
                              .input = input,
                              .arena = arena,
                              .path = "/api/v1/uploads"};
        code = upload_state_find(client_base(client), input, arena, &parts.state, err);
        if (!code)
            code = send_parts(&parts, settings->filename, complete_share, settings, ret_share, err);
    }
    terminal_progress_end(terminal);
    if (code)
        return code;
    if (!is_usable(*ret_share)) {
        json_decref(*ret_share);
        *ret_share = NULL;
        return err_set(err, ERR_NETWORK,
                       "the server's response has no usable id and url: is it a Perfolio server?");
    }
    return ERR_NONE;
}

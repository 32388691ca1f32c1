#include "agent/upload/symbol_client.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/io/http_client.h"
#include "lib/profile/formats/json_tree.h"

#include <inttypes.h>
#include <string.h>

enum {
    RESPONSE_MAX_BYTES = 1 << 20,
    URL_MAX_BYTES = 16 << 10,
    DEADLINE_MS = 600000,
    PARTS_MAX = 1 << 20,
    MESSAGE_BYTES = 200,
};
/* Larger files are uploaded in parts. */
#define WHOLE_MAX_BYTES (UINT64_C(4) << 20)
#define API "/api/v1/debuginfo/"

struct symbol_client {
    struct server_config access;
    const atomic_bool *is_ending;
    struct http_client *client;
    char *base;
};

enum err_code symbol_client_create(const struct server_config *access, const atomic_bool *is_ending,
                                   struct symbol_client **ret_service, struct err *err)
{
    const struct http_client_settings settings = {
        .ca_file = access->ca_file, .user_agent = "perfolio-agent", .proxy = access->proxy};
    struct http_client *client;
    enum err_code code = server_config_check(access->server, err);
    if (!code)
        code = http_client_create(&settings, &client, err);
    if (code)
        return code;
    struct symbol_client *service = mem_new(struct symbol_client, 1);
    *service = (struct symbol_client){.access = *access,
                                      .is_ending = is_ending,
                                      .client = client,
                                      .base = mem_strdup(access->server)};
    size_t size = strlen(service->base);
    while (size && service->base[size - 1] == '/')
        service->base[--size] = 0;
    *ret_service = service;
    return ERR_NONE;
}

void symbol_client_destroy(struct symbol_client *service)
{
    if (!service)
        return;
    http_client_destroy(service->client);
    mem_free(service->base);
    mem_free(service);
}

/* ---- one request ---- */

struct exchange {
    const char *method;
    const char *path;
    const char *content_type; /* NULL: no body */
    struct span body;         /* if it is empty, the body is from offset on `bytes` bytes of file */
    const struct symbol_client_file *file;
    uint64_t offset;
    uint64_t bytes;
    const char *upload_token; /* NULL: none */
};

static bool is_not_ending(void *context, uint64_t sent, uint64_t send_total, uint64_t received,
                          uint64_t receive_total)
{
    const struct symbol_client *service = context;
    (void)sent, (void)send_total, (void)received, (void)receive_total;
    return !atomic_load(service->is_ending);
}

/* The detail or the title of a problem (RFC 9457), for the log. */
static void read_problem(const struct http_client_response *response, char text[MESSAGE_BYTES])
{
    struct err ignored;
    json_t *root;
    const struct span body = buf_span(&response->body);
    text[0] = 0;
    if (json_tree_load(body, NULL, "a response", &root, &ignored))
        return;
    struct span found = json_tree_text(root, "detail");
    if (!found.size)
        found = json_tree_text(root, "title");
    const size_t size = found.size < MESSAGE_BYTES - 1 ? found.size : MESSAGE_BYTES - 1;
    if (size)
        memcpy(text, found.data, size);
    text[size] = 0;
    json_tree_free(root, body);
}

static enum err_code code_of_status(int status)
{
    switch (status) {
    case 401:
        return ERR_UNAUTHENTICATED;
    case 403:
        return ERR_FORBIDDEN;
    case 404:
    case 405:
    case 501:
        return ERR_UNSUPPORTED;
    case 413:
        return ERR_TOO_LARGE;
    case 408:
    case 409: /* another agent is sending the same file */
    case 429:
        return ERR_BUSY;
    default:
        return status >= 400 && status < 500 ? ERR_INVALID : ERR_BUSY;
    }
}

static enum err_code check_response(const struct http_client_response *response, struct err *err)
{
    char problem[MESSAGE_BYTES];
    if (response->status >= 200 && response->status < 300)
        return ERR_NONE;
    read_problem(response, problem);
    err_set(err, code_of_status(response->status), "the server returned status %d: %s",
            response->status, problem);
    err->retry_after_s = response->retry_after_s;
    return err->code;
}

static void add_body(const struct exchange *exchange, struct http_client_request *request)
{
    if (exchange->body.size) {
        request->body_kind = HTTP_CLIENT_BODY_BYTES;
        request->body = exchange->body;
    } else if (exchange->file) {
        request->body_kind = HTTP_CLIENT_BODY_FILE;
        request->body_fd = exchange->file->fd;
        request->body_offset = exchange->offset;
        request->body_bytes = exchange->bytes;
    }
}

static enum err_code send_request(struct symbol_client *service, const struct exchange *exchange,
                                  struct http_client_response *response, struct err *err)
{
    buf_auto token, url;
    buf_init(&token, SERVER_CONFIG_FIELD_BYTES);
    buf_init(&url, URL_MAX_BYTES);
    buf_append_text(&url, service->base);
    buf_append_text(&url, exchange->path);
    buf_append_byte(&url, 0);
    if (buf_failed(&url))
        return err_set(err, ERR_INVALID, "the address of a request is too long");
    enum err_code code = server_config_token(&service->access, &token, err);
    if (code)
        return err_add(err, "reading the token"), ERR_UNAUTHENTICATED;
    struct http_client_field fields[3];
    size_t count = 0;
    if (token.size)
        fields[count++] = (struct http_client_field){"Authorization", (const char *)token.data};
    if (exchange->content_type)
        fields[count++] = (struct http_client_field){"Content-Type", exchange->content_type};
    if (exchange->upload_token)
        fields[count++] =
            (struct http_client_field){"X-Perfolio-Upload-Token", exchange->upload_token};
    struct http_client_request request;
    http_client_request_init(&request, exchange->method, (const char *)url.data);
    request.fields = fields;
    request.field_count = count;
    request.deadline_ms = DEADLINE_MS;
    request.max_response_bytes = RESPONSE_MAX_BYTES;
    request.progress = is_not_ending;
    request.progress_context = service;
    add_body(exchange, &request);
    code = http_client_send(service->client, &request, response, err);
    if (code == ERR_UNAUTHENTICATED) /* of the server's certificate; no error of the token */
        return err->code = ERR_NETWORK;
    return code ? code : check_response(response, err);
}

/* ---- querying ---- */

static uint32_t number_of(const json_t *object, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(object, name));
    return number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

static enum err_code read_status(const struct http_client_response *response,
                                 struct symbol_client_status *ret_status, struct err *err)
{
    const struct span body = buf_span(&response->body);
    json_t *root;
    if (json_tree_load(body, NULL, "the response of the server", &root, err))
        return err->code = ERR_UNSUPPORTED;
    const struct span state = json_tree_text(root, "state");
    const json_t *table = json_object_get(root, "table");
    *ret_status = (struct symbol_client_status){
        .state = span_equal_text(state, "ready")     ? SYMBOL_CLIENT_READY
                 : span_equal_text(state, "pending") ? SYMBOL_CLIENT_PENDING
                                                     : SYMBOL_CLIENT_MISSING,
        .has_own_table = json_is_object(table),
        .quality_rank = number_of(table, "quality_rank"),
        .builder_version = number_of(table, "builder_version")};
    json_tree_free(root, body);
    return state.size ? ERR_NONE : err_set(err, ERR_UNSUPPORTED, "the server has no symbol tables");
}

enum err_code symbol_client_query(struct symbol_client *service, const char *build_id,
                                  struct symbol_client_status *ret_status, struct err *err)
{
    arena_auto arena = arena_create();
    http_client_response_auto response;
    http_client_response_init(&response);
    const struct exchange exchange = {.method = "GET",
                                      .path = arena_printf(arena, API "%s", build_id)};
    const enum err_code code = send_request(service, &exchange, &response, err);
    return code ? code : read_status(&response, ret_status, err);
}

/* ---- sending ---- */

struct parts {
    char *id;
    char *token;
    uint64_t bytes; /* size of each part except the last one */
    uint64_t count;
};

static char *text_of(struct arena *arena, const json_t *object, const char *name)
{
    const struct span text = json_tree_text(object, name);
    return arena_strndup(arena, text.data, text.size);
}

static enum err_code read_parts(const struct http_client_response *response, uint64_t file_bytes,
                                struct arena *arena, struct parts *ret_parts, struct err *err)
{
    const struct span body = buf_span(&response->body);
    json_t *root;
    enum err_code code = json_tree_load(body, NULL, "the response of the server", &root, err);
    if (code)
        return code;
    *ret_parts = (struct parts){.id = text_of(arena, root, "id"),
                                .token = text_of(arena, root, "upload_token"),
                                .bytes = number_of(root, "part_bytes"),
                                .count = number_of(root, "part_count")};
    json_tree_free(root, body);
    const bool is_valid =
        ret_parts->id[0] && !strpbrk(ret_parts->id, "/?#%\r\n") &&
        !strpbrk(ret_parts->token, "\r\n") && ret_parts->bytes && ret_parts->count <= PARTS_MAX &&
        (file_bytes + ret_parts->bytes - 1) / ret_parts->bytes == ret_parts->count;
    return is_valid
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "the server returned an invalid plan for the upload");
}

static enum err_code begin_parts(struct symbol_client *service,
                                 const struct symbol_client_file *file, struct arena *arena,
                                 struct parts *ret_parts, struct err *err)
{
    buf_auto body;
    http_client_response_auto response;
    http_client_response_init(&response);
    buf_init(&body, URL_MAX_BYTES);
    buf_printf(&body, "{\"size\":%" PRIu64 "}", file->bytes);
    const struct exchange exchange = {.method = "POST",
                                      .path = API "uploads",
                                      .content_type = "application/json",
                                      .body = buf_span(&body)};
    const enum err_code code = send_request(service, &exchange, &response, err);
    return code ? code : read_parts(&response, file->bytes, arena, ret_parts, err);
}

static enum err_code put_part(struct symbol_client *service, const struct symbol_client_file *file,
                              const struct parts *parts, uint64_t number, struct arena *arena,
                              struct err *err)
{
    http_client_response_auto response;
    http_client_response_init(&response);
    const uint64_t offset = number * parts->bytes, left = file->bytes - offset;
    const struct exchange exchange = {
        .method = "PUT",
        .path = arena_printf(arena, API "uploads/%s/parts/%" PRIu64, parts->id, number),
        .content_type = "application/octet-stream",
        .file = file,
        .offset = offset,
        .bytes = left < parts->bytes ? left : parts->bytes,
        .upload_token = parts->token};
    return send_request(service, &exchange, &response, err);
}

/* Uploads a large file in parts, and then refers to them in the request that would otherwise
 * contain the file. */
enum err_code symbol_client_send(struct symbol_client *service,
                                 const struct symbol_client_file *file, struct err *err)
{
    arena_auto arena = arena_create();
    http_client_response_auto response = {0};
    buf_auto path = {0};
    const bool has_parts = file->bytes > WHOLE_MAX_BYTES;
    struct parts parts = {0};
    enum err_code code = ERR_NONE;
    http_client_response_init(&response);
    buf_init(&path, URL_MAX_BYTES);
    if (has_parts)
        code = begin_parts(service, file, arena, &parts, err);
    for (uint64_t i = 0; !code && i < parts.count; i++)
        code = put_part(service, file, &parts, i, arena, err);
    if (code)
        return code;
    buf_printf(&path, API "%s/%s?file=", file->build_id, file->kind);
    buf_append_url(&path, span_text(file->name));
    if (has_parts)
        buf_printf(&path, "&upload=%s", parts.id);
    buf_append_byte(&path, 0);
    const struct exchange exchange = {.method = "POST",
                                      .path = (const char *)path.data,
                                      .content_type = has_parts ? NULL : "application/octet-stream",
                                      .file = has_parts ? NULL : file,
                                      .bytes = file->bytes,
                                      .upload_token = has_parts ? parts.token : NULL};
    return buf_failed(&path) ? err_set(err, ERR_INVALID, "the name of a file is too long")
                             : send_request(service, &exchange, &response, err);
}

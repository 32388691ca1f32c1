#include "cli/client.h"

#include "cli/account.h"
#include "cli/advice.h"
#include "cli/link.h"
#include "cli/terminal.h"
#include "cli/token_destination.h"
#include "cli/version.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    FIRST_PAUSE_MS = 500,
    LAST_PAUSE_MS = 30000,
    LONGEST_WAIT_S = 120,
    MAX_RETRIES = 100, /* a larger number in PERFOLIO_RETRIES counts as this one */
    RETRIES_UNSET = -1,
    MAX_JSON_BYTES = 512 << 20, /* a top table of all functions may be long */
};

struct client {
    struct http_client *http;
    struct arena *arena;
    const char *base;
    const char *authorization; /* NULL: anonymous */
    const char *ca_file;       /* the account's; NULL: the system's */
    struct terminal *terminal;
    bool is_own;      /* the account's server */
    bool was_reached; /* it has responded before */
    int set_retries;  /* by PERFOLIO_RETRIES, or RETRIES_UNSET */
};

static int retries_from_environment(void)
{
    const char *text = getenv("PERFOLIO_RETRIES");
    uint64_t number;
    if (!text || !span_parse_u64(span_text(text), &number))
        return RETRIES_UNSET;
    return number > MAX_RETRIES ? MAX_RETRIES : (int)number;
}

enum err_code client_create(const struct account *account, const char *base,
                            struct terminal *terminal, struct client **ret_client, struct err *err)
{
    bool is_own = account->url && (!base || token_destination_is_same(base, account->url));
    if (!base && !account->url)
        return err_set(err, ERR_INVALID,
                       "no server is set: run `perfolio login https://host` or set PERFOLIO_URL");
    const char *token = is_own ? account->token : NULL;
    base = is_own ? account->url : base;
    if (token && !token_destination_is_confidential(base))
        return err_set(err, ERR_INVALID, "the token cannot be sent unencrypted to %s: use https",
                       base);
    struct http_client_settings settings = {
        .ca_file = account->ca_file,
        .keeps_system_cas = !is_own,
        .user_agent = CLI_USER_AGENT,
    };
    struct http_client *http;
    enum err_code code = http_client_create(&settings, &http, err);
    if (code)
        return code;
    struct client *client = mem_new(struct client, 1);
    client->http = http;
    client->arena = arena_create();
    client->base = arena_strdup(client->arena, base);
    client->authorization = token ? arena_printf(client->arena, "Bearer %s", token) : NULL;
    client->ca_file = account->ca_file ? arena_strdup(client->arena, account->ca_file) : NULL;
    client->terminal = terminal;
    client->is_own = is_own;
    client->set_retries = retries_from_environment();
    *ret_client = client;
    return ERR_NONE;
}

void client_destroy(struct client *client)
{
    if (!client)
        return;
    http_client_destroy(client->http);
    arena_destroy(client->arena);
    mem_free(client);
}

const char *client_base(const struct client *client)
{
    return client->base;
}

bool client_has_token(const struct client *client)
{
    return client->authorization;
}

void client_request_init(struct client_request *request, const char *method, const char *path)
{
    *request = (struct client_request){0};
    http_client_request_init(&request->http, method, path);
    request->is_repeatable = strcmp(method, "POST") != 0 && strcmp(method, "PATCH") != 0;
}

void client_request_add(struct client_request *request, const char *name, const char *value)
{
    if (request->field_count < CLIENT_MAX_FIELDS)
        request->fields[request->field_count++] =
            (struct http_client_field){.name = name, .value = value};
}

int64_t client_pause_ms(int attempt, int retry_after_s, uint64_t random)
{
    if (retry_after_s > LONGEST_WAIT_S)
        return -1;
    if (retry_after_s > 0) {
        int64_t wait_ms = retry_after_s * INT64_C(1000);
        return wait_ms + (int64_t)(random % (uint64_t)(wait_ms / 4 + 1));
    }
    int64_t pause_ms = FIRST_PAUSE_MS;
    for (int i = 1; i < attempt && pause_ms < LAST_PAUSE_MS; i++)
        pause_ms *= 2;
    if (pause_ms > LAST_PAUSE_MS)
        pause_ms = LAST_PAUSE_MS;
    return pause_ms / 2 + (int64_t)(random % (uint64_t)(pause_ms / 2 + 1));
}

static enum err_code code_of_status(int status)
{
    switch (status) {
    case 401:
        return ERR_UNAUTHENTICATED;
    case 403:
        return ERR_FORBIDDEN;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return ERR_CONFLICT;
    case 410:
        return ERR_GONE;
    case 412:
        return ERR_STALE;
    case 413:
        return ERR_TOO_LARGE;
    case 415:
        return ERR_UNSUPPORTED;
    case 429:
        return ERR_RATE_LIMITED;
    case 502:
    case 503:
        return ERR_BUSY;
    case 408:
    case 504:
        return ERR_TIMEOUT;
    default:
        return status >= 500 ? ERR_INTERNAL : status >= 400 ? ERR_INVALID : ERR_NETWORK;
    }
}

/* A problem type ends in the name of the server's error code, which is more precise than the
 * status. */
static enum err_code code_of_type(const char *type, enum err_code fallback)
{
    const char *name = strrchr(type, '/');
    for (int code = ERR_NONE + 1; name && code < ERR_CODE_COUNT; code++) {
        if (strcmp(name + 1, err_code_name((enum err_code)code)) == 0)
            return (enum err_code)code;
    }
    return fallback;
}

void client_append_parameter(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    buf_printf(path, "%c%s=", memchr(path->data, '?', path->size) ? '&' : '?', name);
    buf_append_url(path, span_text(value));
}

const char *client_text(const json_t *json, const char *name, const char *fallback)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : fallback;
}

enum err_code client_problem(const struct http_client_response *response, struct err *err)
{
    enum err_code code = code_of_status(response->status);
    json_auto_t *problem = json_loadb((const char *)response->body.data, response->body.size,
                                      JSON_REJECT_DUPLICATES, NULL);
    const char *title = client_text(problem, "title", "");
    /* Other protocols (Connect, OTLP) have a "message". */
    const char *detail = client_text(problem, "detail", client_text(problem, "message", title));
    if (detail[0]) {
        code = code_of_type(client_text(problem, "type", ""), code);
        err_set(err, code, "%s", detail);
        advice_translate(err);
    } else if (response->status >= 300 && response->status < 400) {
        err_set(err, code, "the server returned status %d: check the URL (https, host, port)",
                response->status);
    } else {
        err_set(err, code, "the server returned status %d without a reason", response->status);
    }
    err->retry_after_s = response->retry_after_s;
    const char *id = client_text(problem, "request_id", "");
    size_t length = strlen(err->message);
    /* Their texts ask the user to send the id to the operator. */
    if (id[0] && (code == ERR_INTERNAL || code == ERR_CORRUPT || code == ERR_LOST))
        snprintf(err->message + length, sizeof(err->message) - length, " (request %s)", id);
    return code;
}

/* Whether a later attempt may succeed. A redirect is reported as ERR_NETWORK but is permanent. */
static bool is_temporary(enum err_code code, const struct http_client_response *response)
{
    if (response->status >= 300 && response->status < 400)
        return false;
    return code == ERR_NETWORK || code == ERR_TIMEOUT || code == ERR_BUSY ||
           code == ERR_RATE_LIMITED || code == ERR_DATABASE;
}

/* Whether the request can be sent again without taking effect twice. After 429 and 503 the server
 * did not process it. */
static bool may_repeat(const struct client_request *request,
                       const struct http_client_response *response)
{
    return request->is_repeatable || !response->was_sent || response->status == 429 ||
           response->status == 503;
}

static enum err_code send_once(struct client *client, const struct client_request *request,
                               struct http_client_response *response, struct err *err)
{
    struct http_client_field fields[CLIENT_MAX_FIELDS + 1];
    struct http_client_request http = request->http;
    buf_auto url;
    buf_init(&url, 64 << 10);
    buf_printf(&url, "%s%s", client->base, http.url);
    buf_append_byte(&url, 0);
    if (buf_failed(&url))
        return err_set(err, ERR_INVALID, "the request's address is too long");
    size_t count = request->field_count;
    memcpy(fields, request->fields, count * sizeof(fields[0]));
    if (client->authorization && !request->is_anonymous)
        fields[count++] = (struct http_client_field){"Authorization", client->authorization};
    http.url = (const char *)url.data;
    http.must_not_repeat = !request->is_repeatable;
    http.fields = fields;
    http.field_count = count;
    enum err_code code = http_client_send(client->http, &http, response, err);
    if (code == ERR_UNAUTHENTICATED) { /* from the TLS handshake; status 401 is handled below */
        const size_t length = strlen(err->message), space = sizeof(err->message) - length;
        if (client->ca_file)
            snprintf(err->message + length, space,
                     "; %s does not contain the server's CA: get it with `curl -k %s/ca.crt`",
                     client->ca_file, client->base);
        else
            snprintf(err->message + length, space,
                     "; set the server's CA with PERFOLIO_CA_FILE or `perfolio login --ca-file`");
    }
    if (code)
        return code;
    if (response->status < 200 || response->status > 299)
        return client_problem(response, err);
    return ERR_NONE;
}

static uint64_t random_number(void)
{
    uint64_t number;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        number = (uint64_t)clock_monotonic_ns();
    return number;
}

static int retries_for(const struct client *client, const struct client_request *request,
                       const struct http_client_response *response, enum err_code code)
{
    if (client->set_retries != RETRIES_UNSET)
        return client->set_retries;
    /* A server that has responded before is probably restarting. If it has never responded, its
     * address is probably wrong, or it is not running. */
    if (response->was_refused && !client->was_reached)
        return 0;
    if (request->has_many_retries || response->retry_after_s)
        return CLIENT_MANY_RETRIES;
    return code == ERR_TIMEOUT && !response->status ? 0 : 1;
}

/* Adds a hint to the error: to check the address if no connection was made, or the server's log if
 * the response was cut off. The server aborts a response when it finds that the stored file is
 * damaged. */
static enum err_code add_advice(const struct client *client,
                                const struct http_client_response *response, enum err_code code,
                                struct err *err)
{
    const char *url = getenv("PERFOLIO_URL");
    const char *source = !client->is_own   ? "in the link"
                         : (url && url[0]) ? "in PERFOLIO_URL"
                                           : "stored by `perfolio login`";
    size_t length = strlen(err->message);
    if (!response->was_sent && (code == ERR_NETWORK || code == ERR_TIMEOUT))
        snprintf(err->message + length, sizeof(err->message) - length,
                 " (check that the server runs and that the address %s is correct)", source);
    else if (response->status == 200 && code == ERR_NETWORK)
        snprintf(err->message + length, sizeof(err->message) - length,
                 " (the connection was lost, or the stored file is damaged; see the server's log)");
    return code;
}

/* Prints the server's warning about an incomplete result. */
static void print_warning(const struct client *client, const struct http_client_response *response)
{
    const struct span warning = http_client_response_field(response, "Perfolio-Warning");
    if (warning.size)
        terminal_warn(client->terminal, "%.*s", SPAN_PRINT(warning));
}

enum err_code client_send(struct client *client, const struct client_request *request,
                          struct http_client_response *response, struct err *err)
{
    for (int attempt = 1;; attempt++) {
        *err = (struct err){0};
        enum err_code code = send_once(client, request, response, err);
        client->was_reached = client->was_reached || response->status > 0;
        if (!code)
            print_warning(client, response);
        if (!code || !is_temporary(code, response))
            return code;
        int retries = retries_for(client, request, response, code);
        if (attempt > retries)
            return add_advice(client, response, code, err);
        if (!may_repeat(request, response))
            return err_add(err, "the request was sent, but its outcome is not known, so it is not "
                                "repeated");
        int64_t pause_ms = client_pause_ms(attempt, response->retry_after_s, random_number());
        if (pause_ms < 0)
            return err_add(err, "try again in %d s", response->retry_after_s);
        /* Discard what an interrupted download has written, or the next attempt would append to
         * it. */
        int fd = request->http.response_fd;
        if (fd == STDOUT_FILENO && response->response_bytes) /* cannot be undone */
            return err_add(err, "standard output already contains a part of the response");
        if (fd != HTTP_CLIENT_NO_FD && response->response_bytes &&
            (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET)))
            return code;
        terminal_note(client->terminal, "%s; trying again in %.1f s (%d of %d)", err->message,
                      (double)pause_ms / 1000, attempt, retries);
        clock_sleep_ms(pause_ms);
    }
}

static enum err_code parse_json(const struct http_client_response *response, json_t **ret_json,
                                struct err *err)
{
    json_error_t problem;
    json_t *json = json_loadb((const char *)response->body.data, response->body.size,
                              JSON_ALLOW_NUL | JSON_DECODE_ANY, &problem);
    if (!json)
        return err_set(err, ERR_NETWORK,
                       "the server's response is not JSON (%s): is this a Perfolio server?",
                       problem.text);
    *ret_json = json;
    return ERR_NONE;
}

enum err_code client_send_json(struct client *client, const struct client_request *request,
                               json_t **ret_json, struct err *err)
{
    http_client_response_auto response;
    http_client_response_init(&response);
    struct client_request sized = *request;
    sized.http.accept_compressed = true;
    sized.http.max_response_bytes = MAX_JSON_BYTES;
    client_request_add(&sized, "Accept", "application/json");
    enum err_code code = client_send(client, &sized, &response, err);
    if (code)
        return code;
    if (response.body.size == 0) {
        *ret_json = NULL;
        return response.status == 204
                   ? ERR_NONE
                   : err_set(err, ERR_NETWORK, "the response of the server is empty");
    }
    return parse_json(&response, ret_json, err);
}

enum err_code client_get_json(struct client *client, const char *path, json_t **ret_json,
                              struct err *err)
{
    struct client_request request;
    client_request_init(&request, "GET", path);
    enum err_code code = client_send_json(client, &request, ret_json, err);
    if (code)
        return code;
    if (!*ret_json)
        return err_set(err, ERR_NETWORK, "the response of the server is empty");
    return ERR_NONE;
}

enum err_code client_call_json(struct client *client, const char *method, const char *path,
                               const json_t *body, json_t **ret_json, struct err *err)
{
    struct client_request request;
    client_request_init(&request, method, path);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    if (text) {
        request.http.body_kind = HTTP_CLIENT_BODY_BYTES;
        request.http.body = span_text(text);
        client_request_add(&request, "Content-Type", "application/json");
    }
    enum err_code code = client_send_json(client, &request, ret_json, err);
    free(text);
    return code;
}

#include "api/server/http_internal.h"

#include "api/identity/auth.h"
#include "api/server/request_smuggling.h"
#include "api/server/route_match.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

enum { RESERVED_RETRY_S = 5 };

void http_request_new_id(struct http_loop *loop, char id[REQUEST_ID_BYTES])
{
    /* splitmix64: ids must differ, not be secret. */
    uint64_t mixed = loop->random_state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    snprintf(id, REQUEST_ID_BYTES, "%016llx", (unsigned long long)(mixed ^ (mixed >> 31)));
}

static struct span copy_span(struct arena *arena, h2o_iovec_t bytes)
{
    return span_of(arena_strndup(arena, bytes.base, bytes.len), bytes.len);
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* "%2F" would make one path ambiguous, and control characters are not allowed in paths. */
static enum err_code decode_path(struct arena *arena, struct span raw, struct span *ret_path,
                                 struct err *err)
{
    uint8_t *path = arena_new_raw(arena, uint8_t, raw.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < raw.size; i++) {
        uint8_t byte = raw.data[i];
        if (byte == '%') {
            int high = raw.size - i > 2 ? hex_digit(raw.data[i + 1]) : -1;
            int low = raw.size - i > 2 ? hex_digit(raw.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return err_set(
                    err, ERR_INVALID,
                    "the path contains a %% without two digits: write %%25 for the sign itself");
            byte = (uint8_t)(high * 16 + low);
            if (byte == '/')
                return err_set(
                    err, ERR_INVALID,
                    "the path contains an encoded slash: leave it out, no address here has one");
            i += 2;
        }
        if (byte < 0x20 || byte == 0x7f)
            return err_set(err, ERR_INVALID, "the path contains a control character: leave it out");
        path[size++] = byte;
    }
    path[size] = '\0';
    *ret_path = span_of(path, size);
    if (!span_is_utf8(*ret_path))
        return err_set(err, ERR_INVALID, "the path is not UTF-8: encode it so, in percent signs");
    return ERR_NONE;
}

/* "http://host/path", as sent to proxies, counts as "/path" (RFC 9112 §3.2.2). */
static struct span without_authority(struct span target)
{
    size_t skipped = span_starts_with(target, "https://")  ? 8
                     : span_starts_with(target, "http://") ? 7
                                                           : 0;
    if (skipped == 0)
        return target;
    struct span rest = span_of(target.data + skipped, target.size - skipped);
    const uint8_t *slash = rest.size ? memchr(rest.data, '/', rest.size) : NULL;
    return slash ? span_of(slash, rest.size - (size_t)(slash - rest.data)) : SPAN_LITERAL("/");
}

static enum err_code fill_target(struct request *request, h2o_iovec_t target, struct err *err)
{
    struct span raw = without_authority(copy_span(request->arena, target));
    struct span raw_path;
    span_split(raw, '?', &raw_path, &request->query);
    request->path = raw_path; /* for the problem document, if it is not well formed */
    if (!span_starts_with(raw_path, "/")) {
        request->path = SPAN_LITERAL("");
        return err_set(err, ERR_INVALID, "the path must begin with a slash");
    }
    enum err_code code = decode_path(request->arena, raw_path, &request->path, err);
    if (!code && request_check_query_size(request, err)) {
        request->query = (struct span){0};
        return ERR_INVALID;
    }
    if (code) {
        request->path = SPAN_LITERAL("");
        /* API clients do not get a page, however the path is spelled. */
        request->is_page_malformed =
            !span_starts_with(raw_path, "/api/") && !span_starts_with(raw_path, "/assets/");
    }
    return code;
}

void http_request_fill_fields(struct request *request, const h2o_req_t *req)
{
    struct http_field *fields = arena_new(request->arena, struct http_field, req->headers.size + 1);
    for (size_t i = 0; i < req->headers.size; i++) {
        const h2o_header_t *header = &req->headers.entries[i];
        fields[i].name = copy_span(request->arena, *header->name);
        fields[i].value = copy_span(request->arena, header->value);
    }
    fields[req->headers.size].name = SPAN_LITERAL("host");
    fields[req->headers.size].value = copy_span(request->arena, req->input.authority);
    request->fields = fields;
    request->field_count = req->headers.size + 1;
}

/* The last address of the last such field: the one that the nearest proxy has added, as a field of
 * its own or after those of the client. */
static struct span last_forwarded_for(const struct request *request)
{
    struct span last = {0};
    for (size_t i = 0; i < request->field_count; i++) {
        struct span rest = request->fields[i].value, before;
        if (!span_equal_text(request->fields[i].name, "x-forwarded-for"))
            continue;
        while (rest.size > 0) {
            span_split(rest, ',', &before, &rest);
            last = span_trim(before);
        }
    }
    return last;
}

/* The address in "[address]:port" and "[address]", and in IPv4's "address:port". */
static struct span without_port(struct span text)
{
    const uint8_t *colon = text.size ? memchr(text.data, ':', text.size) : NULL;
    const uint8_t *bracket = text.size ? memchr(text.data, ']', text.size) : NULL;
    if (bracket && text.data[0] == '[')
        return span_of(text.data + 1, (size_t)(bracket - text.data - 1));
    bool is_only = colon && !memchr(colon + 1, ':', (size_t)(text.data + text.size - colon - 1));
    return is_only ? span_of(text.data, (size_t)(colon - text.data)) : text;
}

/* The canonical form, which limits and logs use; false if it is not an address. IPv4 arrives as
 * IPv6 on a dual-stack socket, and a link-local address with the name of the link after it. */
static bool read_address(struct span text, char ret_address[REQUEST_ADDRESS_BYTES])
{
    char plain[REQUEST_ADDRESS_BYTES];
    struct in6_addr parsed;
    struct span link;
    span_split(without_port(text), '%', &text, &link);
    if (text.size >= sizeof(plain))
        return false;
    snprintf(plain, sizeof(plain), "%.*s", SPAN_PRINT(text));
    if (inet_pton(AF_INET, plain, &parsed) == 1)
        return inet_ntop(AF_INET, &parsed, ret_address, REQUEST_ADDRESS_BYTES) != NULL;
    if (inet_pton(AF_INET6, plain, &parsed) != 1)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&parsed))
        return inet_ntop(AF_INET, &parsed.s6_addr[12], ret_address, REQUEST_ADDRESS_BYTES) != NULL;
    return inet_ntop(AF_INET6, &parsed, ret_address, REQUEST_ADDRESS_BYTES) != NULL;
}

static void fill_address(struct request *request, h2o_conn_t *conn, bool trust_forwarded_for)
{
    struct sockaddr_storage address;
    char text[NI_MAXHOST];
    socklen_t size = conn->callbacks->get_peername(conn, (struct sockaddr *)&address);
    size_t text_size =
        size ? h2o_socket_getnumerichost((struct sockaddr *)&address, size, text) : SIZE_MAX;
    struct span shown = text_size == SIZE_MAX ? SPAN_LITERAL("-") : span_of(text, text_size);
    if (!trust_forwarded_for || !read_address(last_forwarded_for(request), request->address))
        if (!read_address(shown, request->address))
            snprintf(request->address, sizeof(request->address), "-");
}

/*
 * Large bodies are not copied: the job takes h2o's input buffer and leaves an empty one that claims
 * the same size, which h2o consumes (and frees) as a whole when the response is sent. This is not
 * done if the buffer contains bytes of a next request, and never for HTTP/2: a reset would free the
 * buffer of the stream while a worker reads it.
 */
static bool steal_body(struct http_job *job, h2o_req_t *req)
{
    h2o_socket_t *sock = job->connection->sock;
    const h2o_buffer_t *input = sock->input;
    if (req->version >= 0x200 || req->entity.len < HTTP_STEAL_BYTES ||
        req->entity.base + req->entity.len != input->bytes + input->size)
        return false;
    job->stolen_input = sock->input;
    job->request.body = span_of(req->entity.base, req->entity.len);
    h2o_buffer_init(&sock->input, &h2o_socket_buffer_prototype);
    /* The next body will probably be as large: h2o would grow the buffer by copies of twice the
     * size. Pages that are not written take no memory; small blocks in the heap would. */
    h2o_buffer_reserve(&sock->input, input->capacity > HTTP_MMAP_BYTES ? input->capacity : 1);
    sock->input->size = input->size;
    job->connection->is_body_taken = true;
    req->entity = (h2o_iovec_t){NULL, 0};
    return true;
}

static void take_body(struct http_job *job, h2o_req_t *req)
{
    if (job->connection->streams_base > 0) /* HTTP/2: the bytes are not in its streams any more */
        job->connection->streams_base += req->entity.len;
    if (req->entity.len > 0 && !steal_body(job, req))
        job->request.body = copy_span(job->request.arena, req->entity);
}

void http_job_release(struct http_job *job)
{
    if (--job->reference_count > 0)
        return;
    if (job->connection)
        http_connection_end(job->connection, job);
    if (job->response.body_kind == RESPONSE_FILE && job->response.file_fd >= 0)
        close(job->response.file_fd);
    if (job->stolen_input)
        h2o_buffer_dispose(&job->stolen_input);
    http_job_uncharge(job);
    atomic_fetch_sub(&job->loop->http->job_count, 1);
    arena_destroy(job->request.arena); /* it contains the job */
}

/* h2o has finished with the request: sent, reset or disconnected. */
static void on_request_disposed(void *shared)
{
    struct http_job *job = *(struct http_job **)shared;
    job->req = NULL;
    http_job_cancel(job);
    if (job->connection) {
        bool is_early = !job->has_response_head && job->connection->is_http2;
        /* Rapid reset: each cancelled stream is cheap for the peer and expensive for the workers.
         */
        if (is_early && ++job->connection->early_cancels > HTTP_MAX_EARLY_CANCELS)
            http_connection_cut(job->connection, REFUSED_CANCELS);
        job->connection->is_body_taken = false;
        http_connection_end(job->connection, job);
        job->connection = NULL;
    }
    http_job_release(job);
}

static struct http_job *create_job(struct http_loop *loop, h2o_req_t *req)
{
    struct arena *arena = arena_create();
    struct http_job *job = arena_new(arena, struct http_job, 1);
    job->loop = loop;
    job->req = req;
    job->reference_count = 1;
    job->message.kind = MESSAGE_RESPONSE;
    job->response.status = 200;
    job->response.file_fd = -1;
    job->request.arena = arena;
    job->request.server = loop->http->server;
    job->request.is_cancelled = &job->is_cancelled;
    job->request.start_ns = clock_monotonic_ns();
    job->request.is_tls = req->input.scheme == &H2O_URL_SCHEME_HTTPS;
    job->request.principal.tenant_id = TENANT_ANONYMOUS;
    http_request_new_id(loop, job->request.id);
    job->connection = http_connection_of(req);
    job->connection->is_http2 = req->version >= 0x200;
    job->connection->paused_ns = 0;
    http_connection_begin(job->connection, job);
    atomic_fetch_add(&loop->http->job_count, 1);
    struct http_job **shared =
        h2o_mem_alloc_shared(&req->pool, sizeof(struct http_job *), on_request_disposed);
    *shared = job;
    return job;
}

static void run_inline(struct http_job *job)
{
    struct err err = {0};
    enum err_code code = job->request.route->handle(&job->request, &job->response, &err);
    http_job_finish(job, code, &err);
    http_response_send(job);
}

static void refuse_request(struct http_job *job, int status, const struct err *err)
{
    http_job_fail(job, status, err);
    http_response_send(job);
}

/* Handles CORS preflights, and OPTIONS in general. */
static void respond_options(struct http_job *job)
{
    buf_auto allow;
    buf_init(&allow, 256);
    route_match_methods(job->loop->http->options.routes, job->request.path, &allow);
    if (allow.size == 0) {
        struct err err;
        err_set(&err, ERR_NOT_FOUND,
                "there is nothing at this address; /api/openapi.yaml lists what there is");
        refuse_request(job, 0, &err);
        return;
    }
    buf_append_text(&allow, ", OPTIONS");
    const char *methods = arena_strndup(job->request.arena, allow.data, allow.size);
    response_add(&job->request, &job->response, "allow", methods);
    struct span params[REQUEST_MAX_PATH_PARAMS];
    const struct route *route;
    struct err err;
    if (route_match(job->loop->http->options.routes, HTTP_GET, job->request.path, params, &route,
                    &err) == ERR_NONE &&
        (route->flags & (ROUTE_CORS | ROUTE_CORS_IF_OPEN))) {
        job->request.route = route; /* so that the response gets the field for any origin */
        job->response.is_open_to_sites = true;
        response_add(&job->request, &job->response, "access-control-allow-methods",
                     "GET, HEAD, OPTIONS");
        response_add(&job->request, &job->response, "access-control-allow-headers",
                     "authorization, x-perfolio-password, if-none-match");
        response_add(&job->request, &job->response, "access-control-max-age", "86400");
    }
    job->response.status = 204;
    http_response_send(job);
}

static void refuse_method(struct http_job *job, const struct err *err)
{
    http_job_fail(job, 405, err);
    buf_auto allow;
    buf_init(&allow, 256);
    route_match_methods(job->loop->http->options.routes, job->request.path, &allow);
    response_add(&job->request, &job->response, "allow",
                 arena_strndup(job->request.arena, allow.data, allow.size));
    http_response_send(job);
}

static enum err_code check_body(const struct request *request, struct err *err)
{
    size_t limit = request->route->max_body_bytes;
    if (request->body.size <= limit)
        return ERR_NONE;
    if (limit == 0)
        return err_set(err, ERR_TOO_LARGE,
                       "this address takes no body: send the request without one");
    return err_set(err, ERR_TOO_LARGE,
                   "the body is %zu bytes; at most %zu are allowed here: send less, or a large "
                   "profile in parts",
                   request->body.size, limit);
}

/* Reserved connections are for clients that can authenticate, and for health checks. */
static enum err_code check_reserved_connection(const struct http_job *job, struct err *err)
{
    const struct request *request = &job->request;
    const unsigned open_flags = ROUTE_INLINE | ROUTE_PROBE | ROUTE_SIGN_IN;
    if (!job->connection->is_reserved || request->route->flags & open_flags ||
        auth_has_credentials(request))
        return ERR_NONE;
    http_connection_log_limit(job->loop->http, HTTP_LIMIT_RESERVED_CONNECTIONS, request->address);
    err_set(err, ERR_BUSY,
            "the server's connections (max-connections) are in use, and the last ones are reserved "
            "for authenticated clients: send a token, sign in, or try again in a few seconds");
    err->retry_after_s = RESERVED_RETRY_S;
    return ERR_BUSY;
}

static void dispatch_job(struct http_job *job)
{
    struct request *request = &job->request;
    struct err err = {0};
    enum err_code code = route_match(job->loop->http->options.routes, request->method,
                                     request->path, request->path_params, &request->route, &err);
    if (code == ERR_UNSUPPORTED) {
        refuse_method(job, &err);
        return;
    }
    if (code == ERR_NONE)
        code = check_reserved_connection(job, &err);
    if (code == ERR_NONE)
        code = check_body(request, &err);
    if (code)
        refuse_request(job, 0, &err);
    else if (request->route->flags & ROUTE_INLINE)
        run_inline(job);
    else if (http_job_submit(job, &err))
        refuse_request(job, 0, &err);
}

/* The head as received, for HTTP/1; h2o only changes names in it to lower case. */
static const char *check_head(const struct http_job *job, const h2o_req_t *req)
{
    if (req->version >= 0x200)
        return req->input.authority.len == 0 ? "the request has no authority" : NULL;
    const h2o_buffer_t *input = job->connection->sock->input;
    return request_smuggling_check(span_of(input->bytes, input->size));
}

int http_request_on_req(h2o_handler_t *self, h2o_req_t *req)
{
    (void)self;
    struct http_loop *loop = http_connection_of(req)->loop;
    struct http_job *job = create_job(loop, req);
    struct request *request = &job->request;
    struct err err = {0};
    http_request_fill_fields(request, req);
    fill_address(request, req->conn, loop->http->options.trust_forwarded_for);
    bool has_method =
        http_method_parse(span_of(req->input.method.base, req->input.method.len), &request->method);
    enum err_code code = fill_target(request, req->input.path, &err);
    const char *malformed = check_head(job, req);
    if (malformed) {
        /* The following bytes on this connection may be an attacker's, so it ends here. */
        job->is_closing = true;
        code = err_set(&err, ERR_INVALID, "%s", malformed);
    }
    if (code) {
        refuse_request(job, 0, &err);
        return 0;
    }
    take_body(job, req);
    if (!has_method) {
        err_set(&err, ERR_UNSUPPORTED,
                "this server does not know that method; it accepts GET, HEAD, POST, PUT, PATCH, "
                "DELETE and OPTIONS");
        refuse_request(job, 501, &err);
    } else if (request->method == HTTP_OPTIONS) {
        respond_options(job);
    } else {
        dispatch_job(job);
    }
    return 0;
}

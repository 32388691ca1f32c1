#include "api/server/http_internal.h"

#include "api/http/problem.h"
#include "api/server/pages.h"
#include "api/server/protocol_error.h"
#include "api/server/route_match.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"

#include <stdio.h>
#include <string.h>

enum { SECURITY_FIELDS_MAX = 5, REFUSED_RETRY_S = 5, REFUSAL_BYTES = 8 << 10 };

struct status_reason {
    int status;
    const char *reason;
};

static const struct status_reason reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {507, "Insufficient Storage"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "Status";
}

static void add_field(h2o_req_t *req, struct span name, struct span value)
{
    h2o_add_header_by_str(&req->pool, &req->res.headers, (const char *)name.data, name.size, 1,
                          NULL, (const char *)value.data, value.size);
}

/* HTML gets the policy of the pages. A script may import others of this site: a worker is bound by
 * the policy of its own script. Everything else may load nothing. */
static const char *policy_for(const char *content_type, bool may_be_framed)
{
    struct span type = content_type ? span_text(content_type) : (struct span){0};
    if (span_starts_with(type, "text/html"))
        return may_be_framed ? pages_framed_content_security_policy : pages_content_security_policy;
    if (span_starts_with(type, "image/svg"))
        return "default-src 'none'; style-src 'unsafe-inline'; sandbox";
    if (span_starts_with(type, "text/javascript"))
        return "default-src 'none'; script-src 'self'; frame-ancestors 'none'";
    return "default-src 'none'; frame-ancestors 'none'";
}

/* Header fields of all responses. Returns their number. */
static size_t list_security_fields(const struct http_server *http, const char *content_type,
                                   bool may_be_framed,
                                   struct http_field fields[SECURITY_FIELDS_MAX])
{
    bool is_html = content_type && span_starts_with(span_text(content_type), "text/html");
    const char *policy = policy_for(content_type, may_be_framed);
    size_t count = 0;
    fields[count++] =
        (struct http_field){SPAN_LITERAL("x-content-type-options"), SPAN_LITERAL("nosniff")};
    fields[count++] =
        (struct http_field){SPAN_LITERAL("referrer-policy"), SPAN_LITERAL("no-referrer")};
    fields[count++] =
        (struct http_field){SPAN_LITERAL("content-security-policy"), span_text(policy)};
    if (is_html)
        fields[count++] = (struct http_field){SPAN_LITERAL("cross-origin-opener-policy"),
                                              SPAN_LITERAL("same-origin")};
    if (http->sends_hsts)
        fields[count++] = (struct http_field){SPAN_LITERAL("strict-transport-security"),
                                              SPAN_LITERAL("max-age=31536000")};
    return count;
}

static void add_security_fields(h2o_req_t *req, const struct http_server *http,
                                const char *content_type, bool may_be_framed)
{
    struct http_field fields[SECURITY_FIELDS_MAX];
    size_t count = list_security_fields(http, content_type, may_be_framed, fields);
    for (size_t i = 0; i < count; i++)
        add_field(req, fields[i].name, fields[i].value);
}

static bool is_open_to_sites(const struct http_job *job)
{
    unsigned flags = job->request.route ? job->request.route->flags : 0;
    return (flags & ROUTE_CORS) || ((flags & ROUTE_CORS_IF_OPEN) && job->response.is_open_to_sites);
}

static void add_fields(h2o_req_t *req, const struct http_job *job)
{
    const struct response *response = &job->response;
    if (response->content_type)
        add_field(req, SPAN_LITERAL("content-type"), span_text(response->content_type));
    add_security_fields(req, job->loop->http, response->content_type, response->may_be_framed);
    add_field(req, SPAN_LITERAL("x-request-id"), span_text(job->request.id));
    if (is_open_to_sites(job)) {
        add_field(req, SPAN_LITERAL("access-control-allow-origin"), SPAN_LITERAL("*"));
        add_field(req, SPAN_LITERAL("access-control-expose-headers"),
                  SPAN_LITERAL("content-disposition, etag, retry-after, x-request-id"));
    }
    for (size_t i = 0; i < response->field_count; i++)
        add_field(req, response->fields[i].name, response->fields[i].value);
}

static size_t body_size(const struct response *response)
{
    switch (response->body_kind) {
    case RESPONSE_BYTES:
        return response->bytes.size;
    case RESPONSE_FILE:
        return response->file_bytes;
    case RESPONSE_EMPTY:
        break;
    }
    return 0;
}

static h2o_send_state_t state_after(const struct http_job *job, size_t size)
{
    return job->sent_bytes + size == body_size(&job->response) ? H2O_SEND_STATE_FINAL
                                                               : H2O_SEND_STATE_IN_PROGRESS;
}

static void send_piece(struct http_job *job, const void *data, size_t size)
{
    h2o_iovec_t piece = h2o_iovec_init(data, size);
    h2o_send_state_t state = state_after(job, size);
    job->sent_bytes += size;
    job->has_unsent_piece = true;
    h2o_send(job->req, &piece, 1, state);
}

/* Sends the bytes in pieces, because TLS copies each piece as a whole. */
static void send_bytes(struct http_job *job)
{
    size_t size = job->response.bytes.size - job->sent_bytes;
    if (size > HTTP_CHUNK_BYTES)
        size = HTTP_CHUNK_BYTES;
    send_piece(job, job->response.bytes.data + job->sent_bytes, size);
}

static void run_read_chunk(struct worker_job *work)
{
    struct http_job *job = (struct http_job *)work;
    if (!atomic_load_explicit(&job->is_cancelled, memory_order_relaxed))
        http_chunk_read(job);
    h2o_multithread_send_message(&job->loop->receiver, &job->message.link);
}

void http_response_continue(struct http_job *job)
{
    if (job->has_failed)
        h2o_send(job->req, NULL, 0, H2O_SEND_STATE_ERROR); /* ends the connection early */
    else
        send_piece(job, job->chunk, job->chunk_bytes);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    (void)req;
    struct http_job *job = H2O_STRUCT_FROM_MEMBER(struct http_job, generator, generator);
    job->has_unsent_piece = false;
    if (job->response.body_kind == RESPONSE_BYTES) {
        send_bytes(job);
        return;
    }
    job->work.run = run_read_chunk;
    job->work.refuse = NULL; /* the head of the response has been sent */
    job->work.bytes = 0;     /* response_memory counts the piece */
    job->reference_count++;
    worker_submit_admitted(http_job_pool(job->loop->http, &job->request), &job->work);
}

static bool has_no_length(int status)
{
    return status == 204 || status == 304;
}

void http_response_send(struct http_job *job)
{
    h2o_req_t *req = job->req;
    struct response *response = &job->response;
    job->has_response_head = true;
    req->res.status = response->status;
    req->res.reason = reason_of(response->status);
    req->res.content_length = has_no_length(response->status) ? SIZE_MAX : body_size(response);
    add_fields(req, job);
    if (job->connection && job->request.principal.kind != PRINCIPAL_ANONYMOUS)
        http_connection_authenticate(job->connection);
    /* An unauthenticated client does not keep a reserved connection. */
    job->is_closing |= job->connection && job->connection->is_reserved;
    if (job->is_closing || job->loop->is_draining)
        req->http1_is_persistent = 0;
    if (job->is_closing && job->connection)
        http_connection_linger(job->connection);
    job->generator = (h2o_generator_t){.proceed = on_proceed};
    h2o_start_response(req, &job->generator);
    if (job->request.method == HTTP_HEAD || body_size(response) == 0 ||
        has_no_length(response->status))
        h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
    else if (response->body_kind == RESPONSE_FILE)
        http_response_continue(job);
    else
        send_bytes(job);
}

/* Replaces h2o's text by our document. */
struct replaced_body {
    h2o_ostream_t stream;
    h2o_iovec_t document;
};

static void send_replaced(h2o_ostream_t *self, h2o_req_t *req, h2o_iovec_t *bufs, size_t count,
                          h2o_send_state_t state)
{
    struct replaced_body *replaced = (struct replaced_body *)self;
    bool has_body = count > 0 && bufs[0].len > 0;
    h2o_ostream_send_next(self, req, has_body ? &replaced->document : NULL, has_body, state);
}

static void describe_error(const h2o_req_t *req, struct err *err)
{
    if (req->res.status == 413)
        err_set(err, ERR_TOO_LARGE,
                "the body is larger than %zu bytes, the limit of one request: send less at once, "
                "or upload a large share in parts, as `perfolio push` does by itself",
                HTTP_MAX_BODY_BYTES);
    else if (req->res.status == 417)
        err_set(err, ERR_INVALID, "the only supported Expect is 100-continue: leave the field out");
    else if (req->res.status < 500)
        err_set(
            err, ERR_INVALID,
            "the request's length or its chunked body is malformed: send a correct Content-Length");
    else
        err_set(err, ERR_INTERNAL, "the HTTP library responded with status %d", req->res.status);
}

/* In the form of the route's protocol, if there is a route; the status is h2o's. */
static void respond_to_error(const struct http_server *http, struct request *request,
                             struct response *response, const h2o_req_t *req, const struct err *err)
{
    struct err no_route;
    http_request_head_fill_fields(request, req);
    (void)!route_match(http->options.routes, request->method, request->path, request->path_params,
                       &request->route, &no_route);
    if (!protocol_error_respond(request, response, err))
        problem_respond(request, response, req->res.status, err);
}

static void replace_error(h2o_req_t *req, h2o_ostream_t **slot)
{
    struct http_connection *connection = http_connection_of(req);
    arena_auto arena = arena_create();
    struct request request = {.arena = arena, .server = connection->loop->http->server};
    /* The path that h2o has read; empty if the head itself is malformed. */
    struct span target = span_of(req->input.path.base, req->input.path.len);
    span_split(target, '?', &request.path, &target);
    http_method_parse(span_of(req->input.method.base, req->input.method.len), &request.method);
    struct response response = {0};
    struct err err;
    http_request_head_new_id(connection->loop, request.id);
    describe_error(req, &err);
    respond_to_error(connection->loop->http, &request, &response, req, &err);
    problem_log(&request, req->res.status, &err);
    struct replaced_body *replaced =
        (struct replaced_body *)h2o_add_ostream(req, sizeof(*replaced), slot);
    replaced->stream.do_send = send_replaced;
    replaced->document =
        h2o_strdup(&req->pool, (const char *)response.bytes.data, response.bytes.size);
    req->res.reason = reason_of(req->res.status);
    req->res.content_length = replaced->document.len;
    req->res.headers = (h2o_headers_t){0};
    add_field(req, SPAN_LITERAL("content-type"), span_text(response.content_type));
    add_field(req, SPAN_LITERAL("cache-control"), SPAN_LITERAL("no-store"));
    add_security_fields(req, connection->loop->http, response.content_type, false);
    h2o_iovec_t id = h2o_strdup(&req->pool, request.id, SIZE_MAX);
    add_field(req, SPAN_LITERAL("x-request-id"), span_of(id.base, id.len));
    /* The rest of the body is still arriving; without this the peer would get a reset and no
     * response. */
    if (!req->http1_is_persistent && !connection->is_http2)
        http_connection_linger(connection);
}

static void append_fields(struct buf *head, const struct http_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(head, "%.*s: %.*s\r\n", SPAN_PRINT(fields[i].name), SPAN_PRINT(fields[i].value));
}

/* "POST /path?query HTTP/1.1"; nothing if it is longer. */
static void read_request_line(struct request *request, struct span input)
{
    struct span line, method, target, rest;
    if (!span_split(span_of(input.data,
                            input.size < HTTP_LOG_TEXT_BYTES ? input.size : HTTP_LOG_TEXT_BYTES),
                    '\r', &line, &rest))
        return;
    span_split(line, ' ', &method, &rest);
    span_split(rest, ' ', &target, &rest);
    span_split(target, '?', &request->path, &rest);
    http_method_parse(method, &request->method);
}

/* The bytes of a 503, made in arena, and logged; input is the part of the request that was
 * received.
 */
static struct span describe_refusal(struct http_loop *loop, struct span input, struct arena *arena)
{
    struct request request = {.arena = arena, .server = loop->http->server};
    struct response response = {0};
    struct http_field fields[SECURITY_FIELDS_MAX];
    struct err err;
    err_set(&err, ERR_BUSY,
            "the server is receiving as many uploads as it can hold; try again in a few seconds");
    err.retry_after_s = REFUSED_RETRY_S;
    read_request_line(&request, input);
    http_request_head_new_id(loop, request.id);
    problem_respond(&request, &response, 0, &err);
    problem_log(&request, response.status, &err);
    buf_auto text;
    buf_init(&text, REFUSAL_BYTES);
    buf_printf(&text,
               "HTTP/1.1 %d %s\r\nserver: perfolio\r\nconnection: close\r\ncontent-length: %zu\r\n"
               "content-type: %s\r\nx-request-id: %s\r\n",
               response.status, reason_of(response.status), response.bytes.size,
               response.content_type, request.id);
    append_fields(&text, fields,
                  list_security_fields(loop->http, response.content_type, false, fields));
    append_fields(&text, response.fields, response.field_count);
    buf_append_text(&text, "\r\n");
    buf_append_span(&text, response.bytes);
    return span_of(arena_strndup(arena, text.data, text.size), text.size);
}

/* Lets h2o close the connection, as if its peer had gone. */
static void on_refusal_sent(h2o_socket_t *sock, const char *err)
{
    (void)err;
    struct http_connection *connection = sock->on_close.data;
    connection->refused_read(sock, h2o_socket_error_closed);
}

void http_response_refuse(struct http_connection *connection)
{
    h2o_socket_t *sock = connection->sock;
    h2o_socket_cb on_read = connection->paused_read ? connection->paused_read : sock->_cb.read;
    if (connection->is_cut)
        return;
    if (connection->is_http2 || !on_read || sock->_cb.write) {
        http_connection_cut(connection, REFUSED_BUFFERS);
        return;
    }
    h2o_socket_read_stop(sock);
    connection->paused_read = NULL;
    connection->refused_read = on_read;
    connection->refused_ns = clock_monotonic_ns();
    connection->is_cut = true;
    http_connection_count_refusal(connection->loop->http, REFUSED_BUFFERS);
    http_connection_linger(connection);
    connection->refusal = arena_create();
    struct span response = describe_refusal(
        connection->loop, span_of(sock->input->bytes, sock->input->size), connection->refusal);
    h2o_iovec_t piece = h2o_iovec_init(response.data, response.size);
    h2o_socket_write(sock, &piece, 1, on_refusal_sent);
}

void http_response_filter(h2o_filter_t *self, h2o_req_t *req, h2o_ostream_t **slot)
{
    (void)self;
    if (req->res.status >= 400 && !http_connection_find_job(http_connection_of(req), req)) {
        replace_error(req, slot);
        slot = &(*slot)->next;
    }
    h2o_setup_next_ostream(req, slot);
}

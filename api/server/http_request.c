#include "api/server/http_internal.h"

#include "api/identity/auth.h"
#include "api/server/request_smuggling.h"
#include "api/server/route_match.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"

#include <unistd.h>

enum { RESERVED_RETRY_S = 5, PIPELINED_BYTES = 32 << 10 };

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
        job->request.body = http_request_head_copy(job->request.arena, req->entity);
}

void http_request_release(struct http_job *job)
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
    http_request_release(job);
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
    http_request_head_new_id(loop, job->request.id);
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

/*
 * Whether the client has sent much more than this request without waiting for its response. All of
 * that is in memory, and would be handled even if the client has closed the connection: 540
 * connections with some MB of short requests took a processor for more than five minutes after
 * their end. Clients that pipeline send a few requests, so the connection ends after this one. The
 * bytes of a request without a body include its own head.
 */
static bool is_flood(const struct http_job *job, const h2o_req_t *req)
{
    if (req->version >= 0x200)
        return false;
    const h2o_buffer_t *input = job->connection->sock->input;
    const char *end = input->bytes + input->size, *begin = input->bytes;
    if (req->entity.base >= begin && req->entity.base <= end)
        begin = req->entity.base + req->entity.len;
    return end - begin > PIPELINED_BYTES;
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
    http_request_head_fill_fields(request, req);
    http_request_head_fill_address(request, req->conn, loop->http->options.trust_forwarded_for);
    bool has_method =
        http_method_parse(span_of(req->input.method.base, req->input.method.len), &request->method);
    enum err_code code = http_request_head_fill_target(request, req->input.path, &err);
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
    job->is_closing = is_flood(job, req);
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

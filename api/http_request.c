#include "api/http_internal.h"

#include "api/auth.h"
#include "api/http_strict.h"
#include "api/limiter.h"
#include "api/pages.h"
#include "api/problem.h"
#include "api/routes.h"
#include "api/server.h"
#include "api/settings.h"
#include "api/turns.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum {
    MIN_COMPRESSED_BYTES = 1024,   /* below, the gain is a part of one packet */
    LARGE_ANSWER_BYTES = 4 << 20,  /* from here on gzip works at its fastest level */
    JOB_OVERHEAD_BYTES = 16 << 10, /* what a request costs besides its body */
    TURN_WAIT_MAX_S = 30,          /* a request's age when it no longer waits for its turn */
    DATABASE_RETRIES = 4,
    DATABASE_RETRY_MS = 50, /* until sessions of a database that crashed have noticed */
};

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

/* "%2F" would make two paths of one, and control characters have no business in one. */
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
                    "the path holds a %% without two digits: write %%25 for the sign itself");
            byte = (uint8_t)(high * 16 + low);
            if (byte == '/')
                return err_set(
                    err, ERR_INVALID,
                    "the path holds an encoded slash: leave it out, no address here has one");
            i += 2;
        }
        if (byte < 0x20 || byte == 0x7f)
            return err_set(err, ERR_INVALID, "the path holds a control character: leave it out");
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
    request->path = raw_path; /* for the problem document, should it not be well formed */
    if (!span_starts_with(raw_path, "/")) {
        request->path = SPAN_LITERAL("");
        return err_set(err, ERR_INVALID, "the path must begin with a slash");
    }
    enum err_code code = decode_path(request->arena, raw_path, &request->path, err);
    if (code)
        request->path = SPAN_LITERAL("");
    return code;
}

static void fill_fields(struct request *request, const h2o_req_t *req)
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
 * its own or behind what the client sent. */
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

static void fill_address(struct request *request, h2o_conn_t *conn, bool trust_forwarded_for)
{
    struct sockaddr_storage address;
    char text[NI_MAXHOST];
    socklen_t size = conn->callbacks->get_peername(conn, (struct sockaddr *)&address);
    size_t text_size =
        size ? h2o_socket_getnumerichost((struct sockaddr *)&address, size, text) : SIZE_MAX;
    struct span shown = text_size == SIZE_MAX ? SPAN_LITERAL("-") : span_of(text, text_size);
    if (span_starts_with(shown, "::ffff:")) /* IPv4 on a socket for both */
        shown = span_of(shown.data + 7, shown.size - 7);
    struct span forwarded = trust_forwarded_for ? last_forwarded_for(request) : (struct span){0};
    if (forwarded.size > 0)
        shown = forwarded;
    snprintf(request->address, sizeof(request->address), "%.*s", SPAN_PRINT(shown));
}

/*
 * Large bodies are not copied: the job takes over h2o's input buffer and leaves an empty one that
 * claims the same size, which h2o consumes (and frees) as a whole when the answer is sent. Only
 * when nothing of a next request is in the buffer, and never for HTTP/2, whose reset frees the
 * stream's buffer while a worker reads.
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
    h2o_buffer_reserve(&sock->input, 1);
    sock->input->size = job->stolen_input->size;
    req->entity = (h2o_iovec_t){NULL, 0};
    return true;
}

static void take_body(struct http_job *job, h2o_req_t *req)
{
    if (job->connection->streams_base > 0) /* HTTP/2: no longer among what its streams hold */
        job->connection->streams_base += req->entity.len;
    if (req->entity.len > 0 && !steal_body(job, req))
        job->request.body = copy_span(job->request.arena, req->entity);
}

/* Shared bytes are charged while anybody reads them: the first one adds them, the last one takes
 * them off. Returns how much was added. */
static size_t charge_shared(struct http_job *job)
{
    if (!job->reader_count || atomic_fetch_add(job->reader_count, 1) > 0)
        return 0;
    return job->shared_bytes;
}

static void uncharge_answer(struct http_job *job)
{
    size_t bytes = job->charged_bytes;
    if (job->reader_count && atomic_fetch_sub(job->reader_count, 1) == 1)
        bytes += job->shared_bytes;
    atomic_fetch_sub(&job->loop->http->answer_bytes, bytes);
    job->charged_bytes = job->shared_bytes = 0;
    job->reader_count = NULL;
}

void http_job_release(struct http_job *job)
{
    if (--job->reference_count > 0)
        return;
    if (job->connection)
        h2o_linklist_unlink(&job->connection_link);
    if (job->response.body_kind == RESPONSE_FILE && job->response.file_fd >= 0)
        close(job->response.file_fd);
    if (job->stolen_input)
        h2o_buffer_dispose(&job->stolen_input);
    uncharge_answer(job);
    atomic_fetch_sub(&job->loop->http->job_count, 1);
    arena_destroy(job->request.arena); /* the job is in it */
}

/* h2o is done with the request: answered, reset or disconnected. */
static void on_request_disposed(void *shared)
{
    struct http_job *job = *(struct http_job **)shared;
    job->req = NULL;
    http_job_cancel(job);
    if (job->connection) {
        bool is_early = !job->is_answered && job->connection->is_http2;
        /* Rapid reset: each cancelled stream is cheap for the peer and dear for the workers. */
        if (is_early && ++job->connection->early_cancels > HTTP_MAX_EARLY_CANCELS)
            http_connection_cut(job->connection, REFUSED_CANCELS);
        h2o_linklist_unlink(&job->connection_link);
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
    job->message.kind = MESSAGE_ANSWER;
    job->response.status = 200;
    job->response.file_fd = -1;
    job->request.arena = arena;
    job->request.server = loop->http->server;
    job->request.start_ns = clock_monotonic_ns();
    job->request.is_tls = req->input.scheme == &H2O_URL_SCHEME_HTTPS;
    job->request.principal.tenant_id = TENANT_ANONYMOUS;
    http_request_new_id(loop, job->request.id);
    job->connection = http_connection_of(req);
    job->connection->is_http2 = req->version >= 0x200;
    h2o_linklist_insert(&job->connection->jobs, &job->connection_link);
    atomic_fetch_add(&loop->http->job_count, 1);
    struct http_job **shared =
        h2o_mem_alloc_shared(&req->pool, sizeof(struct http_job *), on_request_disposed);
    *shared = job;
    return job;
}

static void begin_response_again(struct http_job *job)
{
    if (job->response.body_kind == RESPONSE_FILE && job->response.file_fd >= 0)
        close(job->response.file_fd);
    job->response = (struct response){.status = 200, .file_fd = -1};
}

static void fail(struct http_job *job, int status, const struct err *err)
{
    begin_response_again(job);
    struct err shell_err;
    if (!pages_shows_error(&job->request, err) ||
        pages_respond_not_found(&job->request, &job->response, &shell_err))
        problem_respond(&job->request, &job->response, status, err);
    problem_log(&job->request, job->response.status, err);
}

static const char *find_response_field(const struct response *response, const char *name)
{
    for (size_t i = 0; i < response->field_count; i++) {
        if (span_equal_text(response->fields[i].name, name))
            return (const char *)response->fields[i].value.data;
    }
    return NULL;
}

static void fini_buf(void *buf)
{
    buf_fini(buf);
}

/* An entity tag names the bytes before compression, so it compares weakly from now on. */
static void weaken_etag(struct request *request, struct response *response)
{
    for (size_t i = 0; i < response->field_count; i++) {
        struct http_field *field = &response->fields[i];
        if (span_equal_text(field->name, "etag") && !span_starts_with(field->value, "W/"))
            field->value =
                span_text(arena_printf(request->arena, "W/%.*s", SPAN_PRINT(field->value)));
    }
}

static void compress_answer(struct request *request, struct response *response)
{
    if (!response->may_compress || response->body_kind != RESPONSE_BYTES ||
        response->bytes.size < MIN_COMPRESSED_BYTES ||
        find_response_field(response, "content-encoding"))
        return;
    response_add(request, response, "vary", "accept-encoding");
    bool is_zstd = request_accepts_encoding(request, "zstd");
    if (!is_zstd && !request_accepts_encoding(request, "gzip"))
        return;
    struct buf *packed = arena_new(request->arena, struct buf, 1);
    buf_init(packed, response->bytes.size - 1); /* larger is no gain: sent as it is then */
    arena_on_destroy(request->arena, fini_buf, packed);
    int gzip_level =
        response->bytes.size > LARGE_ANSWER_BYTES ? COMPRESS_GZIP_FAST : COMPRESS_GZIP_DEFAULT;
    struct err err;
    enum err_code code = is_zstd
                             ? compress_zstd(response->bytes, COMPRESS_ZSTD_DEFAULT, packed, &err)
                             : compress_gzip(response->bytes, gzip_level, packed, &err);
    if (code)
        return;
    response->bytes = buf_span(packed);
    response_add(request, response, "content-encoding", is_zstd ? "zstd" : "gzip");
    weaken_etag(request, response);
}

static void name_user(struct http_job *job)
{
    const struct principal *principal = &job->request.principal;
    if (principal->kind == PRINCIPAL_USER)
        snprintf(job->user, sizeof(job->user), "user-%lld@%lld", (long long)principal->user_id,
                 (long long)principal->tenant_id);
    else if (principal->kind == PRINCIPAL_TOKEN)
        snprintf(job->user, sizeof(job->user), "token-%lld@%lld", (long long)principal->token_id,
                 (long long)principal->tenant_id);
}

/*
 * What a peer takes slowly stays in memory meanwhile: the body, the one it was packed from, which
 * the request's arena may hold, and the piece that TLS has copied. What many answers read, a cached
 * report, counts once. False past the cap; a single answer always passes.
 */
static bool charge_answer(struct http_job *job, size_t plain_bytes)
{
    const struct response *response = &job->response;
    bool is_file = response->body_kind == RESPONSE_FILE;
    size_t body = is_file ? (size_t)response->file_bytes : response->bytes.size;
    size_t piece = body < HTTP_CHUNK_BYTES ? body : HTTP_CHUNK_BYTES;
    size_t made = is_file ? 0 : plain_bytes; /* by the handler */
    size_t packed = is_file ? piece : body != plain_bytes ? body : 0;
    size_t held = piece + packed;
    if (response->body_kind == RESPONSE_EMPTY || held + made <= HTTP_LARGE_ANSWER_BYTES)
        return true;
    struct http_server *http = job->loop->http;
    job->reader_count = response->reader_count;
    job->shared_bytes = response->reader_count ? made : 0;
    job->charged_bytes = held + made - job->shared_bytes;
    size_t added = job->charged_bytes + charge_shared(job);
    size_t before = atomic_fetch_add(&http->answer_bytes, added);
    if (before == 0 || before + added <= http->options.max_buffered_bytes)
        return true;
    uncharge_answer(job);
    return false;
}

static enum err_code identify_and_handle(struct http_job *job, struct err *err)
{
    struct request *request = &job->request;
    struct limiter *limiter = request->server->limiter;
    bool counts_misses = (request->route->flags & ROUTE_LIMIT_404) != 0;
    struct span address = span_text(request->address);
    enum err_code code = ERR_NONE;
    if (counts_misses)
        code = limiter_check(limiter, LIMIT_MISS_ADDRESS, address, err);
    if (code == ERR_NONE)
        code = auth_identify(request, err);
    if (code)
        return code;
    name_user(job);
    code = auth_check_access(request, err);
    if (code == ERR_NONE)
        code = request->route->handle(request, &job->response, err);
    if (counts_misses && (code == ERR_NOT_FOUND || job->response.status == 404))
        limiter_fail(limiter, LIMIT_MISS_ADDRESS, address);
    return code;
}

static bool is_cancelled(struct http_job *job)
{
    return atomic_load_explicit(&job->is_cancelled, memory_order_relaxed);
}

/* Nothing was done for it. libh2o still wants an answer for HTTP/1, which nobody will read. */
static void answer_nobody(struct http_job *job)
{
    struct err err;
    err_set(&err, ERR_CANCELLED, "the client has gone: ask again");
    begin_response_again(job);
    problem_respond(&job->request, &job->response, 0, &err);
}

static void send_answer(struct http_job *job)
{
    h2o_multithread_send_message(&job->loop->receiver, &job->message.link);
}

void http_job_cancel(struct http_job *job)
{
    atomic_store_explicit(&job->is_cancelled, true, memory_order_relaxed);
    if (!turns_leave(job->request.server->turns, &job->request.turn))
        return;
    answer_nobody(job);
    send_answer(job);
}

static void fail_stopping(struct http_job *job)
{
    struct err err;
    err_set(&err, ERR_BUSY, "the server is stopping; try again in a few seconds");
    err.retry_after_s = 5;
    fail(job, 0, &err);
}

static void fail_waiting(struct http_job *job)
{
    struct err err;
    err_set(&err, ERR_BUSY, "too many ask for reports that take long; try again in a few seconds");
    err.retry_after_s = 5;
    fail(job, 0, &err);
}

void http_job_check_waiting(struct http_job *job, int64_t now_ns)
{
    bool is_stopping = job->loop->is_draining;
    int64_t max_ns = job->request.server->settings->report_wait_s * CLOCK_NS_PER_S;
    bool is_long = now_ns - job->request.start_ns > max_ns;
    if ((!is_stopping && !is_long) || !turns_leave(job->request.server->turns, &job->request.turn))
        return;
    if (is_stopping)
        fail_stopping(job);
    else
        fail_waiting(job);
    send_answer(job);
}

static bool only_reads(const struct request *request)
{
    return request->method == HTTP_GET || request->method == HTTP_HEAD;
}

/*
 * A connection that breaks under a statement leaves open whether it was carried out. For what only
 * reads that does not matter: it is asked again, on fresh connections, while the database may be
 * restarting. Waiting for the first connection is pg_take's, whatever the method: one that it
 * could not get is not asked for again.
 */
static enum err_code handle_patiently(struct http_job *job, struct err *err)
{
    int64_t deadline_ns = clock_monotonic_ns() + SERVER_DATABASE_WAIT_MS * CLOCK_NS_PER_MS;
    enum err_code code = identify_and_handle(job, err);
    for (int i = 0; code == ERR_DATABASE && err->is_disconnect && only_reads(&job->request) &&
                    i < DATABASE_RETRIES;
         i++) {
        if (clock_monotonic_ns() >= deadline_ns || is_cancelled(job))
            break;
        clock_sleep_ms(DATABASE_RETRY_MS);
        begin_response_again(job);
        *err = (struct err){0};
        code = identify_and_handle(job, err);
    }
    return code;
}

static void finish(struct http_job *job, enum err_code code, const struct err *err)
{
    if (code)
        fail(job, 0, err);
    size_t plain_bytes = job->response.bytes.size;
    compress_answer(&job->request, &job->response);
    if (!charge_answer(job, plain_bytes)) {
        struct err busy;
        err_set(&busy, ERR_BUSY,
                "the server is sending as many large answers as it can hold; try again soon");
        busy.retry_after_s = 5;
        fail(job, 0, &busy);
    }
    if (job->response.body_kind == RESPONSE_FILE && job->request.method != HTTP_HEAD)
        http_response_read_chunk(job);
}

/* False when the request waits for its turn. */
static bool handle_in_turn(struct http_job *job)
{
    struct turn *turn = &job->request.turn;
    enum turns_outcome outcome;
    do {
        struct err err = {0};
        outcome = TURNS_REFUSED;
        enum err_code code = handle_patiently(job, &err);
        bool lacks_turn = code == ERR_BUSY && turn->key && !turn->is_held;
        if (lacks_turn && only_reads(&job->request))
            outcome = turns_take_or_wait(job->request.server->turns, turn);
        if (outcome == TURNS_WAITING)
            return false;
        if (outcome == TURNS_TAKEN)
            begin_response_again(job);
        else
            finish(job, code, &err);
    } while (outcome == TURNS_TAKEN);
    return true;
}

/* False when the request waits for its turn: another thread may have the job by now. */
static bool run(struct http_job *job)
{
    struct turn *turn = &job->request.turn;
    if (is_cancelled(job))
        answer_nobody(job);
    else if (turn->is_held && http_server_is_stopping(job->loop->http))
        fail_stopping(job); /* it begins no reports: a turn that was handed on is handed on again */
    else if (!handle_in_turn(job))
        return false;
    if (turn->is_held)
        turns_give(job->request.server->turns, turn);
    return true;
}

static void run_on_worker(struct worker_job *work)
{
    struct http_job *job = (struct http_job *)work;
    if (run(job))
        send_answer(job);
}

static void run_again(struct turn *turn)
{
    struct http_job *job =
        (struct http_job *)(void *)((char *)turn - offsetof(struct http_job, request.turn));
    worker_submit_admitted(job->loop->http->workers, &job->work);
}

static void run_inline(struct http_job *job)
{
    struct err err = {0};
    enum err_code code = job->request.route->handle(&job->request, &job->response, &err);
    finish(job, code, &err);
    http_response_send(job);
}

static void refuse(struct http_job *job, int status, const struct err *err)
{
    fail(job, status, err);
    http_response_send(job);
}

static void submit(struct http_job *job)
{
    struct http_server *http = job->loop->http;
    bool is_probe = (job->request.route->flags & ROUTE_PROBE) != 0;
    job->work.run = run_on_worker;
    job->request.turn.wake = run_again;
    job->work.bytes = job->request.body.size + JOB_OVERHEAD_BYTES;
    job->reference_count++;
    struct err err;
    if (worker_submit(is_probe ? http->probes : http->workers, &job->work, &err)) {
        job->reference_count--;
        refuse(job, 0, &err);
    }
}

/* What a browser asks before a request from another site, and what others may ask. */
static void answer_options(struct http_job *job)
{
    buf_auto allow;
    buf_init(&allow, 256);
    routes_allow(job->request.path, &allow);
    if (allow.size == 0) {
        struct err err;
        err_set(&err, ERR_NOT_FOUND,
                "there is nothing at this address; /api/openapi.yaml lists what there is");
        refuse(job, 0, &err);
        return;
    }
    buf_append_text(&allow, ", OPTIONS");
    const char *methods = arena_strndup(job->request.arena, allow.data, allow.size);
    response_add(&job->request, &job->response, "allow", methods);
    struct span params[REQUEST_MAX_PATH_PARAMS];
    const struct route *route;
    struct err err;
    if (routes_match(HTTP_GET, job->request.path, params, &route, &err) == ERR_NONE &&
        (route->flags & ROUTE_CORS)) {
        job->request.route = route; /* so that the answer gets the field for any origin */
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
    fail(job, 405, err);
    buf_auto allow;
    buf_init(&allow, 256);
    routes_allow(job->request.path, &allow);
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
    return err_set(
        err, ERR_TOO_LARGE,
        "the body is %zu bytes; at most %zu are taken here: send less, or a large profile in parts",
        request->body.size, limit);
}

static void dispatch(struct http_job *job)
{
    struct request *request = &job->request;
    struct err err = {0};
    enum err_code code =
        routes_match(request->method, request->path, request->path_params, &request->route, &err);
    if (code == ERR_UNSUPPORTED) {
        refuse_method(job, &err);
        return;
    }
    if (code == ERR_NONE)
        code = check_body(request, &err);
    if (code)
        refuse(job, 0, &err);
    else if (request->route->flags & ROUTE_INLINE)
        run_inline(job);
    else
        submit(job);
}

/* The head as it came, for HTTP/1; h2o only lower-cases names in it. */
static const char *check_head(const struct http_job *job, const h2o_req_t *req)
{
    if (req->version >= 0x200)
        return req->input.authority.len == 0 ? "the request has no authority" : NULL;
    const h2o_buffer_t *input = job->connection->sock->input;
    return http_strict_check(span_of(input->bytes, input->size));
}

int http_request_on_req(h2o_handler_t *self, h2o_req_t *req)
{
    (void)self;
    struct http_loop *loop = http_connection_of(req)->loop;
    struct http_job *job = create_job(loop, req);
    struct request *request = &job->request;
    struct err err = {0};
    fill_fields(request, req);
    fill_address(request, req->conn, loop->http->options.trust_forwarded_for);
    bool has_method =
        http_method_parse(span_of(req->input.method.base, req->input.method.len), &request->method);
    enum err_code code = fill_target(request, req->input.path, &err);
    const char *malformed = check_head(job, req);
    if (malformed) {
        /* What follows on this connection may be anybody's: it ends here. */
        job->is_closing = true;
        code = err_set(&err, ERR_INVALID, "%s", malformed);
    }
    if (code) {
        refuse(job, 0, &err);
        return 0;
    }
    take_body(job, req);
    if (!has_method) {
        err_set(&err, ERR_UNSUPPORTED,
                "this server does not know that method; it takes GET, HEAD, POST, PUT, PATCH, "
                "DELETE and OPTIONS");
        refuse(job, 501, &err);
    } else if (request->method == HTTP_OPTIONS) {
        answer_options(job);
    } else {
        dispatch(job);
    }
    return 0;
}

/*
 * The path of a job through the threads:
 *
 *   loop     http_job_submit: into the queue of a pool
 *   worker   run_job: dropped if its client has gone, 503 if it was queued for too long; otherwise
 *            the handler runs, http_job_finish compresses and charges the response, and a message
 *            returns the job to the loop
 *   aside    a request whose client occupies its share of the workers, and a request whose handler
 *            lacks a slot, if it is a GET or sets may_run_again, are put aside, without a worker.
 *            rerun_job queues the job again when
 *            another one passes its slot on; the loop ends it when its client has gone, it has
 *            waited for too long, or the server stops; refuse_job ends it when the list is full and
 *            a request of a client with fewer of them replaces it, as in a full queue
 *
 * A job that was put aside belongs to no thread until its slot is removed from the waiting list.
 * Then it belongs to the thread that removed it: the one that calls concurrency_limit_give, which
 * calls rerun_job, the one that calls concurrency_limit_take_or_wait, which calls refuse_job, or
 * the loop, if concurrency_limit_leave has returned true. Its pool counts its body until the loop
 * has the response (worker_release in http_server.c), so put aside or not, bodies have one limit.
 *
 * A job waits for one slot at a time. It may wait for a worker of its client while it holds the
 * slot of its handler, but it returns the worker before it waits for that slot, so no jobs can
 * wait for each other.
 */
#include "api/server/http_internal.h"

#include "api/core/disk.h"
#include "api/core/query_memory.h"
#include "api/core/server.h"
#include "api/core/settings.h"
#include "api/http/concurrency_limit.h"
#include "api/http/problem.h"
#include "api/http/rate_limiter.h"
#include "api/http/request_limits.h"
#include "api/http/route.h"
#include "api/identity/auth.h"
#include "api/identity/change_limit.h"
#include "api/identity/quota.h"
#include "api/ingest/sources.h"
#include "api/server/pages.h"
#include "api/server/protocol_error.h"
#include "api/server/response_memory.h"
#include "api/server/server_run.h"
#include "api/server/tcp_info.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/io/pg.h"

#include <stdio.h>
#include <unistd.h>

enum {
    MIN_COMPRESSED_BYTES = 1024,    /* below this, the gain is a part of one packet */
    LARGE_RESPONSE_BYTES = 4 << 20, /* from here on gzip works at its fastest level */
    JOB_OVERHEAD_BYTES = 16 << 10,  /* the memory of a request besides its body */
    QUEUE_MAX_WAIT_MS = 10000,      /* for a worker; clients time out soon after that */
    INGEST_MS = 15000, /* for the queue and all statements of a request with profiles */
    DATABASE_RETRIES = 4,
    DATABASE_RETRY_MS = 50, /* until sessions of a database that crashed have noticed */
};

void http_job_uncharge(struct http_job *job)
{
    if (job->response_holder)
        response_memory_give(job->loop->http->response_memory, job->response_holder, &job->charged);
    job->charged = (struct response_bytes){0};
    job->response_holder = NULL;
}

static void begin_response_again(struct http_job *job)
{
    if (job->response.body_kind == RESPONSE_FILE && job->response.file_fd >= 0)
        close(job->response.file_fd);
    job->response = (struct response){.status = 200, .file_fd = -1};
}

void http_job_fail(struct http_job *job, int status, const struct err *err)
{
    begin_response_again(job);
    struct err shell_err;
    if (protocol_error_respond(&job->request, &job->response, err)) {
        problem_log(&job->request, job->response.status, err);
        return;
    }
    if (!pages_shows_error(&job->request, err) ||
        pages_respond_no_page(&job->request, &job->response, &shell_err))
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

/* An entity tag names the bytes before compression, so it becomes weak. */
static void weaken_etag(struct request *request, struct response *response)
{
    for (size_t i = 0; i < response->field_count; i++) {
        struct http_field *field = &response->fields[i];
        if (span_equal_text(field->name, "etag") && !span_starts_with(field->value, "W/"))
            field->value =
                span_text(arena_printf(request->arena, "W/%.*s", SPAN_PRINT(field->value)));
    }
}

static void compress_response(struct request *request, struct response *response)
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
    buf_init(packed, response->bytes.size -
                         1); /* a larger result is useless: the response is sent uncompressed */
    arena_on_destroy(request->arena, fini_buf, packed);
    int gzip_level =
        response->bytes.size > LARGE_RESPONSE_BYTES ? COMPRESS_GZIP_FAST : COMPRESS_GZIP_DEFAULT;
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
 * Counts the memory that is held while the peer reads the response: the body; the uncompressed
 * body, which the request's arena may contain; and the piece that TLS has copied. A cached report
 * that many responses send counts once. Errors: ERR_BUSY (a limit of response_memory.h).
 */
static enum err_code charge_response(struct http_job *job, size_t plain_bytes, struct err *err)
{
    const struct response *response = &job->response;
    bool is_file = response->body_kind == RESPONSE_FILE;
    size_t body = is_file ? (size_t)response->file_bytes : response->bytes.size;
    size_t piece = body < HTTP_CHUNK_BYTES ? body : HTTP_CHUNK_BYTES;
    size_t made = is_file ? 0 : plain_bytes; /* by the handler */
    size_t packed = is_file ? piece : body != plain_bytes ? body : 0;
    size_t held = piece + packed;
    if (response->body_kind == RESPONSE_EMPTY || held + made <= HTTP_LARGE_RESPONSE_BYTES)
        return ERR_NONE;
    const bool is_shared = response->reader_count != NULL;
    job->charged = (struct response_bytes){.own = held + (is_shared ? 0 : made),
                                           .shared = is_shared ? made : 0,
                                           .readers = response->reader_count};
    const enum err_code code = response_memory_take(job->loop->http->response_memory, &job->request,
                                                    &job->charged, &job->response_holder, err);
    if (code)
        job->charged = (struct response_bytes){0};
    return code;
}

static bool limits_misses(const struct request *request)
{
    return (request->route->flags & ROUTE_LIMIT_404) != 0;
}

/* Clients with valid credentials pass whatever others behind the same address have missed. For
 * everyone else the back-off comes first: without credentials nothing is looked up, and wrong ones
 * reveal no more than the back-off does. */
static enum err_code identify(struct request *request, struct err *err)
{
    enum err_code limit = ERR_NONE;
    if (request->route->flags & ROUTE_NO_IDENTITY)
        return ERR_NONE; /* it is anonymous already */
    if (limits_misses(request))
        limit = rate_limiter_check(request->server->limits->rate_limiter, LIMIT_MISS_ADDRESS,
                                   span_text(request->address), err);
    if (limit == ERR_NONE)
        return auth_identify(request, err);
    if (!auth_has_credentials(request))
        return limit;
    struct err identity_err = {0};
    enum err_code code = auth_identify(request, &identity_err);
    if (code == ERR_NONE && request->principal.kind != PRINCIPAL_ANONYMOUS)
        return ERR_NONE;
    if (code == ERR_NONE || code == ERR_UNAUTHENTICATED)
        return limit;
    *err = identity_err;
    return code;
}

/* A guess is an anonymous request for something that does not exist. */
static void count_miss(const struct http_job *job, enum err_code code)
{
    const struct request *request = &job->request;
    bool is_missing = code == ERR_NOT_FOUND || job->response.status == 404;
    if (limits_misses(request) && is_missing && !request->has_found &&
        request->principal.kind == PRINCIPAL_ANONYMOUS)
        rate_limiter_fail(request->server->limits->rate_limiter, LIMIT_MISS_ADDRESS,
                          span_text(request->address));
}

/* A request for an unknown path has no route. */
static bool is_of_agent(const struct request *request)
{
    return request->route && request->route->flags & ROUTE_AGENT;
}

/* A download sends a stored object. */
static bool is_download(const struct request *request)
{
    return request->route && request->route->flags & ROUTE_DOWNLOAD;
}

/* A request waits only for slots of the pool of threads that handles it. */
static struct concurrency_limit *limit_of(const struct http_job *job)
{
    const struct server *server = job->request.server;
    return is_of_agent(&job->request)   ? server->limits->agents
           : is_download(&job->request) ? server->limits->downloads
                                        : server->limits->reports;
}

/* Whether the request is handled by the threads that the clients share (http_job_pool). */
static bool needs_worker(const struct request *request)
{
    return !(request->route->flags & (ROUTE_PROBE | ROUTE_AGENT | ROUTE_DOWNLOAD | ROUTE_PASSWORD));
}

/* A client occupies at most half of the workers, independently of the kind of its requests. The
 * handler has not run yet, so the request can be handled again from the start. */
static enum err_code take_worker(struct request *request, struct err *err)
{
    return needs_worker(request)
               ? request_take_worker(request, request->server->limits->workers, err)
               : ERR_NONE;
}

/*
 * A tenant has at most half of the threads for agents, because decoding the bodies of its agents
 * may take all processors, and a flush may be slow. Further requests of the tenant are put aside,
 * so that requests of other tenants find a thread. A request is put aside before its body is
 * decoded, so it can be handled again from the start.
 */
static enum err_code take_agent_slot(struct http_job *job, struct err *err)
{
    struct request *request = &job->request;
    struct concurrency_slot *slot = &request->concurrency_slot;
    if (request->principal.kind == PRINCIPAL_ANONYMOUS)
        return ERR_NONE; /* the handler refuses it */
    if (!slot->key) {    /* other threads read it as soon as the slot is held or waited for */
        slot->most = (request->server->settings->ingest_threads + 1) / 2;
        slot->key =
            arena_printf(request->arena, "agents of %lld", (long long)request->principal.tenant_id);
    }
    request->may_run_again = true;
    if (concurrency_limit_take(request->server->limits->agents, slot))
        return ERR_NONE;
    err_set(err, ERR_BUSY,
            "too many requests of the team's agents are being handled; try again in a few seconds");
    err->retry_after_s = 5;
    return ERR_BUSY;
}

/* Whether the request is refused below the reserve of the disk: it stores data or changes rows.
 * Deletions, sign-in, passwords, roles and the routes of operators go on, because they free space
 * or take access away. */
static bool needs_space(const struct request *request)
{
    const struct route *route = request->route;
    const enum http_method method = request->method;
    if (route->flags & (ROUTE_STORES | ROUTE_AGENT))
        return true;
    const bool may_change_rows = method == HTTP_POST || method == HTTP_PUT || method == HTTP_PATCH;
    return may_change_rows && !(route->scopes & SCOPE_OPERATOR) &&
           !(route->flags & (ROUTE_SECURITY | ROUTE_SIGN_IN | ROUTE_NEEDS_NO_SPACE));
}

/* Checks rights, disk space and the rate of changes, and takes the worker of the client or the slot
 * of an agent, before the handler of a request runs. */
static enum err_code admit(struct http_job *job, struct err *err)
{
    struct request *request = &job->request;
    enum err_code code = auth_check_access(request, err);
    if (code)
        return code;
    if (needs_space(request))
        code = disk_check(request->server->disk, err);
    if (code)
        return code;
    code = change_limit_take(request, err);
    if (code)
        return code;
    return request->route->flags & ROUTE_AGENT ? take_agent_slot(job, err)
                                               : take_worker(request, err);
}

static enum err_code identify_and_handle(struct http_job *job, struct err *err)
{
    struct request *request = &job->request;
    request->has_found = false;
    enum err_code code = identify(request, err);
    if (code)
        return code;
    name_user(job);
    pg_set_client(request->principal.tenant_id);
    code = admit(job, err);
    if (code == ERR_NONE)
        code = request->route->handle(request, &job->response, err);
    change_limit_finish(request, code);
    quota_return_uncommitted(request);
    query_memory_leave(&request->query_slots);
    count_miss(job, code);
    if ((request->route->flags & ROUTE_AGENT) && request->principal.kind != PRINCIPAL_ANONYMOUS)
        sources_note(request, code, err);
    return code;
}

static bool is_cancelled(struct http_job *job)
{
    return atomic_load_explicit(&job->is_cancelled, memory_order_relaxed);
}

/* The request was dropped. libh2o still expects a response for HTTP/1, which no client will read.
 */
static void drop_response(struct http_job *job)
{
    struct err err;
    err_set(&err, ERR_CANCELLED, "the client has gone: send the request again");
    begin_response_again(job);
    problem_respond(&job->request, &job->response, 0, &err);
}

static void send_response(struct http_job *job)
{
    h2o_multithread_send_message(&job->loop->receiver, &job->message.link);
}

/* Returns what the job holds, so that other jobs can have it. */
static void give_slots(struct http_job *job)
{
    struct request *request = &job->request;
    if (request->worker_slot.is_held)
        concurrency_limit_give(request->server->limits->workers, &request->worker_slot);
    if (request->concurrency_slot.is_held)
        concurrency_limit_give(limit_of(job), &request->concurrency_slot);
}

/* True: the job was put aside, and now belongs to the caller. */
static bool leave_waiting(struct http_job *job)
{
    struct request *request = &job->request;
    if (!concurrency_limit_leave(limit_of(job), &request->concurrency_slot) &&
        !concurrency_limit_leave(request->server->limits->workers, &request->worker_slot))
        return false;
    give_slots(job);
    return true;
}

void http_job_cancel(struct http_job *job)
{
    atomic_store_explicit(&job->is_cancelled, true, memory_order_relaxed);
    if (!leave_waiting(job))
        return;
    drop_response(job);
    send_response(job);
}

static void fail_stopping(struct http_job *job)
{
    struct err err;
    err_set(&err, ERR_BUSY, "the server is stopping; try again in a few seconds");
    err.retry_after_s = 5;
    http_job_fail(job, 0, &err);
}

/* If requests that wait for the same slow resource, such as a locked table, occupy all workers of a
 * pool, the queued requests would be handled long after their clients have gone, and each would
 * wait again. */
static bool has_queued_too_long(const struct http_job *job)
{
    const struct request *request = &job->request;
    return !request->concurrency_slot.is_held && !request->worker_slot.is_held &&
           clock_monotonic_ns() - job->queued_ns > QUEUE_MAX_WAIT_MS * CLOCK_NS_PER_MS;
}

static void fail_queued(struct http_job *job)
{
    struct err err;
    err_set(&err, ERR_BUSY,
            "the request has waited %d s for a worker of the server: try again in a few seconds",
            QUEUE_MAX_WAIT_MS / 1000);
    err.retry_after_s = 5;
    http_job_fail(job, 0, &err);
}

static void fail_waiting(struct http_job *job, bool is_for_worker)
{
    struct err err;
    err_set(&err, ERR_BUSY,
            is_for_worker ? "the request has waited too long (report-wait) for other requests of "
                            "the same team or address; try again in a few seconds"
            : is_of_agent(&job->request)
                ? "too many requests of the team's agents are being handled; try again in a few "
                  "seconds"
            : is_download(&job->request)
                ? "this download has waited too long (report-wait) for others of the same file or "
                  "team; try again in a few seconds"
            : job->request.may_run_again
                ? "this upload has waited too long (report-wait) for others that are being read; "
                  "try again in a few seconds"
            : job->request.concurrency_slot.source
                ? "this file has waited too long (report-wait): without credentials an address can "
                  "generate one at a time; sign in, or try again in a few seconds"
                : "too many slow reports are being computed; try again in a few seconds");
    err.retry_after_s = 5;
    http_job_fail(job, 0, &err);
}

void http_job_check_waiting(struct http_job *job, int64_t now_ns)
{
    if (is_cancelled(job)) { /* just before it was put aside */
        http_job_cancel(job);
        return;
    }
    bool is_stopping = job->loop->is_draining;
    int64_t max_ns = is_of_agent(&job->request)
                         ? INGEST_MS * CLOCK_NS_PER_MS
                         : job->request.server->settings->report_wait_s * CLOCK_NS_PER_S;
    bool is_long = now_ns - job->request.start_ns > max_ns;
    const bool is_for_worker = atomic_load(&job->request.worker_slot.is_waiting);
    if ((!is_stopping && !is_long) || !leave_waiting(job))
        return;
    if (is_stopping)
        fail_stopping(job);
    else
        fail_waiting(job, is_for_worker);
    send_response(job);
}

static bool only_reads(const struct request *request)
{
    return request->method == HTTP_GET || request->method == HTTP_HEAD;
}

/*
 * If a connection breaks during a statement, it is unknown whether it was executed. For a GET that
 * does not matter: it is repeated, on new connections, while the database may be restarting.
 * pg_take waits for the first connection, whatever the method; if it could not get one, the request
 * is not repeated.
 */
static enum err_code handle_with_retries(struct http_job *job, struct err *err)
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

void http_job_finish(struct http_job *job, enum err_code code, const struct err *err)
{
    if (code)
        http_job_fail(job, 0, err);
    size_t plain_bytes = job->response.bytes.size;
    compress_response(&job->request, &job->response);
    struct err busy;
    if (charge_response(job, plain_bytes, &busy))
        http_job_fail(job, 0, &busy);
    if (job->response.body_kind == RESPONSE_FILE && job->request.method != HTTP_HEAD)
        http_chunk_read(job);
    /* Nothing has been sent yet, so the client can still get a problem document. */
    if (job->has_failed) {
        job->has_failed = false;
        http_job_fail(job, 0, &job->err);
    }
}

static bool lacks(const struct concurrency_slot *slot)
{
    return slot->key && !slot->is_held;
}

/* Takes the slot that the handler lacked, or waits for it. */
static enum concurrency_limit_outcome take_lacking(struct http_job *job)
{
    struct request *request = &job->request;
    struct concurrency_limit *shares = request->server->limits->workers;
    if (lacks(&request->worker_slot))
        return concurrency_limit_take_or_wait(shares, &request->worker_slot);
    if (!lacks(&request->concurrency_slot) || !(only_reads(request) || request->may_run_again))
        return CONCURRENCY_LIMIT_REFUSED;
    if (request->worker_slot.is_held)
        concurrency_limit_give(shares, &request->worker_slot);
    return concurrency_limit_take_or_wait(limit_of(job), &request->concurrency_slot);
}

/* False if the request waits for its slot. */
static bool handle_with_slot(struct http_job *job)
{
    enum concurrency_limit_outcome outcome;
    do {
        struct err err = {0};
        outcome = CONCURRENCY_LIMIT_REFUSED;
        begin_response_again(job); /* the handler may have added fields before it lacked a slot */
        enum err_code code = handle_with_retries(job, &err);
        if (code == ERR_BUSY)
            outcome = take_lacking(job);
        if (outcome == CONCURRENCY_LIMIT_WAITING)
            return false;
        if (outcome == CONCURRENCY_LIMIT_REFUSED)
            http_job_finish(job, code, &err);
    } while (outcome == CONCURRENCY_LIMIT_TAKEN);
    return true;
}

/* False if the request waits for its slot: another thread may have the job by now. */
static bool run_job(struct http_job *job)
{
    const struct request *request = &job->request;
    const bool was_aside = request->concurrency_slot.is_held || request->worker_slot.is_held;
    if (is_cancelled(job))
        drop_response(job);
    else if (was_aside && atomic_load(&job->loop->http->is_stopping))
        fail_stopping(
            job); /* no more reports are started: a slot that was passed on is passed on again */
    else if (has_queued_too_long(job))
        fail_queued(job);
    else if (!handle_with_slot(job))
        return false;
    give_slots(job);
    return true;
}

static void run_on_worker(struct worker_job *work)
{
    struct http_job *job = (struct http_job *)work;
    const bool is_done = run_job(job);
    pg_set_client(PG_NO_TENANT);
    if (is_done)
        send_response(job);
}

/* Agents wait for a flush, possibly of a slow bucket, downloads for a bucket or a disk, attempts to
 * sign in for each other, and other readers for processors: none of them waits for the others. */
struct worker_pool *http_job_pool(const struct http_server *http, const struct request *request)
{
    const unsigned flags = request->route->flags;
    return flags & ROUTE_PROBE      ? http->probes
           : flags & ROUTE_AGENT    ? http->agent_workers
           : flags & ROUTE_DOWNLOAD ? http->download_workers
           : flags & ROUTE_PASSWORD ? http->password_workers
                                    : http->workers;
}

static void rerun_job(struct concurrency_slot *slot)
{
    struct http_job *job = slot->owner;
    worker_submit_admitted(http_job_pool(job->loop->http, &job->request), &job->work);
}

/* Called for a job that waits in a queue or was put aside, instead of its handler. */
static void refuse_job(struct http_job *job)
{
    struct err err;
    give_slots(job);
    err_set(&err, ERR_BUSY,
            "too many requests wait for the server, and most of them are of your address or team; "
            "try again in a few seconds");
    err.retry_after_s = 5;
    http_job_fail(job, 0, &err);
    send_response(job);
}

static void refuse_waiting(struct concurrency_slot *slot)
{
    refuse_job(slot->owner);
}

static void refuse_queued(struct worker_job *work)
{
    refuse_job((struct http_job *)work);
}

static struct concurrency_slot slot_of(struct http_job *job)
{
    return (struct concurrency_slot){
        .bytes = job->request.body.size, .owner = job, .wake = rerun_job, .refuse = refuse_waiting};
}

/* A queue knows a client by its address only, since its credentials are looked up on a worker. */
static uint64_t client_number(const struct request *request)
{
    return tcp_info_site_of_text(request->address) + 1; /* 0: no client */
}

enum err_code http_job_submit(struct http_job *job, struct err *err)
{
    struct http_server *http = job->loop->http;
    job->work.run = run_on_worker;
    job->work.refuse = refuse_queued;
    job->work.client = client_number(&job->request);
    job->work.bytes = job->request.body.size + JOB_OVERHEAD_BYTES;
    job->request.concurrency_slot = slot_of(job);
    job->request.worker_slot = slot_of(job);
    job->queued_ns = clock_monotonic_ns();
    if (job->request.route->flags & ROUTE_AGENT)
        job->request.deadline_ns = job->queued_ns + INGEST_MS * CLOCK_NS_PER_MS;
    job->reference_count++;
    enum err_code code = worker_submit(http_job_pool(http, &job->request), &job->work, err);
    if (code)
        job->reference_count--;
    return code;
}

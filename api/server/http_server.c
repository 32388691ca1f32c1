#include "api/server/http_internal.h"

#include "api/core/server.h"
#include "api/http/access_log.h"
#include "api/http/local_ca.h"
#include "api/server/response_memory.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/thread_signals.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    MAX_LOOPS = 4,
    MIN_WORKERS = 4,
    MAX_WORKERS = 16,
    ITERATION_MS = 100,      /* a loop runs its checks at least this often */
    SPARE_DESCRIPTORS = 512, /* for files, the database and lingering sockets */
    TRIM_BYTES = 2 << 20,
    HEAPS_MIN = 2,
    END_MS = 2000, /* for h2o to notice that its sockets are shut down */
    PROBE_WORKERS = 2,
    PASSWORD_THREADS = 34, /* all slots and waiting requests (rate_limiter.c), and some more */
    PROBE_QUEUE = 32,
    MIN_CONNECTIONS_PER_ADDRESS = 16, /* by default */
};

struct listener_slot {
    struct http_loop *loop;
    bool is_tls;
};

static long or_default(long given, long fallback)
{
    return given > 0 ? given : fallback;
}

static long clamp(long number, long low, long high)
{
    return number < low ? low : number > high ? high : number;
}

/* Each connection is a descriptor: accepting beyond the limit would spin on a full table. */
static int limit_connections(int wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (rlim_t)wanted + SPARE_DESCRIPTORS)
        return wanted;
    int possible = limit.rlim_cur > 2 * SPARE_DESCRIPTORS ? (int)limit.rlim_cur - SPARE_DESCRIPTORS
                                                          : (int)limit.rlim_cur / 2;
    log_event(LOG_WARN, "fewer connections than max-connections: the limit of open files is low",
              "connections=%d open_files=%llu", possible, (unsigned long long)limit.rlim_cur);
    return possible;
}

static void set_defaults(struct http_options *options)
{
    long cores = clamp(sysconf(_SC_NPROCESSORS_ONLN), 1, 1024);
    options->loop_count = (int)or_default(options->loop_count, clamp(cores, 1, MAX_LOOPS));
    options->worker_count =
        (int)or_default(options->worker_count, clamp(2 * cores, MIN_WORKERS, MAX_WORKERS));
    options->max_queued_requests = (int)or_default(options->max_queued_requests, 256);
    if (options->max_queued_bytes == 0)
        options->max_queued_bytes = (size_t)128 << 20;
    if (options->max_buffered_bytes == 0)
        options->max_buffered_bytes = (size_t)192 << 20;
    options->max_connections = limit_connections((int)or_default(options->max_connections, 4096));
    int tenth = (int)clamp(options->max_connections / 10, 1, INT_MAX);
    if (options->max_connections_per_address == 0 && !options->trust_forwarded_for)
        options->max_connections_per_address =
            (int)clamp(tenth, MIN_CONNECTIONS_PER_ADDRESS, INT_MAX);
    if (options->max_new_connections_per_address == 0 && !options->trust_forwarded_for)
        options->max_new_connections_per_address = 32;
    options->reserved_connections =
        (int)clamp(or_default(options->reserved_connections, tenth), 0, options->max_connections);
    options->idle_timeout_s = (int)or_default(options->idle_timeout_s, 60);
    options->slow_timeout_s = (int)or_default(options->slow_timeout_s, 30);
    options->send_timeout_s = (int)or_default(options->send_timeout_s, 60);
    options->handshake_timeout_s = (int)or_default(options->handshake_timeout_s, 10);
}

static char *copy_text(const char *text)
{
    return text && text[0] ? mem_strdup(text) : NULL;
}

static void copy_options(struct http_server *http, const struct http_options *options)
{
    http->options = *options;
    struct http_listener *listeners = mem_new(struct http_listener, options->listener_count);
    for (size_t i = 0; i < options->listener_count; i++)
        listeners[i] = options->listeners[i];
    http->options.listeners = listeners;
    http->options.certificate_path = copy_text(options->certificate_path);
    http->options.key_path = copy_text(options->key_path);
    http->options.access_log_path = copy_text(options->access_log_path);
    http->options.public_url = copy_text(options->public_url);
    set_defaults(&http->options);
}

static void free_options(struct http_options *options)
{
    mem_free((void *)(uintptr_t)options->listeners);
    mem_free((void *)(uintptr_t)options->certificate_path);
    mem_free((void *)(uintptr_t)options->key_path);
    mem_free((void *)(uintptr_t)options->access_log_path);
    mem_free((void *)(uintptr_t)options->public_url);
}

/* Closes the sockets that http_server_create got; each loop closes its own copies (start_draining).
 * The supervisor's copies keep listening, for the next server. */
static void close_listening_sockets(const struct http_server *http)
{
    for (size_t i = 0; i < http->options.listener_count; i++)
        close(http->options.listeners[i].fd);
}

/* Browsers remember HSTS for a host, with all its ports: never send it for localhost. It is
 * not sent either if clients see a certificate of the local CA: under HSTS a browser does not let
 * its user bypass the warning about an unknown authority. */
static bool wants_hsts(const struct settings *settings, const char *public_url)
{
    if (!public_url || local_ca_is_used(settings))
        return false;
    struct span url = span_text(public_url);
    return span_starts_with(url, "https://") && !span_starts_with(url, "https://localhost") &&
           !span_starts_with(url, "https://127.") && !span_starts_with(url, "https://[::1]");
}

static bool has_tls_listener(const struct http_options *options)
{
    for (size_t i = 0; i < options->listener_count; i++) {
        if (options->listeners[i].is_tls)
            return true;
    }
    return false;
}

static void set_up_h2o(struct http_server *http)
{
    const struct http_options *options = &http->options;
    /* Request buffers stay in memory: the largest body is far below h2o's threshold for files. */
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
    h2o_config_init(&http->config);
    http->config.server_name = h2o_iovec_init(H2O_STRLIT("perfolio"));
    /* h2o refuses a chunked body that reaches the number, so it is one more than the limit. */
    http->config.max_request_entity_size = HTTP_MAX_BODY_BYTES + 1;
    http->config.handshake_timeout = (uint64_t)options->handshake_timeout_s * 1000;
    /* One absolute limit for the whole request would abort slow uploads; the sweep is more precise.
     */
    http->config.http1.req_timeout = UINT64_C(7) * 24 * 3600 * 1000;
    http->config.http1.upgrade_to_http2 = 0;
    http->config.http2.idle_timeout = (uint64_t)options->idle_timeout_s * 1000;
    http->config.http2.graceful_shutdown_timeout = 0; /* http_server_stop has its own deadline */
    http->config.http2.max_concurrent_requests_per_connection = 32;
    h2o_hostconf_t *host =
        h2o_config_register_host(&http->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_create_handler(&host->fallback_path, sizeof(h2o_handler_t))->on_req = http_request_on_req;
    h2o_create_filter(&host->fallback_path, sizeof(h2o_filter_t))->on_setup_ostream =
        http_response_filter;
    h2o_create_logger(&host->fallback_path, sizeof(h2o_logger_t))->log_access = http_log_request;
}

enum err_code http_server_create(struct server *server, const struct http_options *options,
                                 struct http_server **ret_http, struct err *err)
{
    struct http_server *http = mem_new(struct http_server, 1);
    http->server = server;
    copy_options(http, options);
    enum err_code code = ERR_NONE;
    if (has_tls_listener(&http->options))
        code = http_tls_load(&http->options, &http->tls, err);
    if (code == ERR_NONE && http->options.access_log_path)
        code = access_log_create(http->options.access_log_path, &http->access_log, err);
    if (code) {
        if (http->tls)
            SSL_CTX_free(http->tls);
        close_listening_sockets(http);
        free_options(&http->options);
        mem_free(http);
        return code;
    }
    http->sends_hsts = wants_hsts(server->settings, http->options.public_url);
    http->loops = mem_new(struct http_loop, (size_t)http->options.loop_count);
    http->response_memory = response_memory_create(http->options.max_buffered_bytes);
    http->connections = connection_table_create(&(struct connection_limits){
        .total = http->options.max_connections,
        .per_address = http->options.max_connections_per_address,
        .reserved = http->options.reserved_connections,
    });
    if (http->options.max_new_connections_per_address)
        http->connection_rate = connection_rate_create(
            http->options.max_new_connections_per_address, clock_monotonic_ns);
    set_up_h2o(http);
    http_metrics_register(http);
    *ret_http = http;
    return ERR_NONE;
}

static void on_listener_ready(h2o_socket_t *listener, const char *h2o_error)
{
    struct listener_slot *slot = listener->data;
    struct http_loop *loop = slot->loop;
    if (!h2o_error)
        http_connection_accept(loop, listener,
                               slot->is_tls ? &loop->accept_tls : &loop->accept_plain);
}

static void open_listeners(struct http_loop *loop)
{
    const struct http_options *options = &loop->http->options;
    loop->listeners = mem_new(h2o_socket_t *, options->listener_count);
    for (size_t i = 0; i < options->listener_count; i++) {
        int fd = fcntl(options->listeners[i].fd, F_DUPFD_CLOEXEC, 3);
        assert(fd >= 0); /* at start there are descriptors left */
        int size = HTTP_RECEIVE_BUFFER;
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
        struct listener_slot *slot = mem_new(struct listener_slot, 1);
        *slot = (struct listener_slot){.loop = loop, .is_tls = options->listeners[i].is_tls};
        loop->listeners[i] =
            h2o_evloop_socket_create(loop->context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
        loop->listeners[i]->data = slot;
        h2o_socket_read_start(loop->listeners[i], on_listener_ready);
    }
}

static void close_listeners(struct http_loop *loop)
{
    for (size_t i = 0; i < loop->http->options.listener_count; i++) {
        if (!loop->listeners[i])
            continue;
        mem_free(loop->listeners[i]->data);
        h2o_socket_read_stop(loop->listeners[i]);
        h2o_socket_close(loop->listeners[i]);
        loop->listeners[i] = NULL;
    }
}

static void start_draining(struct http_loop *loop)
{
    if (loop->is_draining)
        return;
    loop->is_draining = true;
    loop->next_sweep_ns = 0;
    close_listeners(loop);
    h2o_context_request_shutdown(&loop->context);
}

/* Frees the body while a slow peer reads the response, unless it is the response. */
static void drop_body(struct http_job *job)
{
    const uint8_t *body = job->request.body.data;
    const uint8_t *response = job->response.bytes.data;
    if (!job->stolen_input || (response >= body && response < body + job->request.body.size))
        return;
    job->request.body = (struct span){0};
    h2o_buffer_dispose(&job->stolen_input);
    job->stolen_input = NULL;
}

static void on_response(struct http_job *job)
{
    drop_body(job);
    worker_release(http_job_pool(job->loop->http, &job->request), &job->work);
    if (job->req && !job->has_response_head)
        http_response_send(job);
    else if (job->req)
        http_response_continue(job);
    http_request_release(job);
}

static void on_message(struct http_loop *loop, struct http_message *message)
{
    switch (message->kind) {
    case MESSAGE_RESPONSE:
        on_response(H2O_STRUCT_FROM_MEMBER(struct http_job, message, message));
        return; /* the message is part of the job */
    case MESSAGE_CERTIFICATE:
        SSL_CTX_free(loop->accept_tls.ssl_ctx);
        loop->accept_tls.ssl_ctx = message->tls;
        break;
    case MESSAGE_EVICTIONS:
        break; /* http_sweep_loop follows each iteration */
    case MESSAGE_CUT:
        loop->is_cut = true;
        start_draining(loop);
        http_connection_end_lingering(loop, INT64_MAX);
        break;
    case MESSAGE_DRAIN:
        start_draining(loop);
        break;
    case MESSAGE_END:
        loop->is_ending = true;
        break;
    }
    mem_free(message);
}

static void on_messages(h2o_multithread_receiver_t *receiver, h2o_linklist_t *messages)
{
    struct http_loop *loop = H2O_STRUCT_FROM_MEMBER(struct http_loop, receiver, receiver);
    while (!h2o_linklist_is_empty(messages)) {
        struct http_message *message =
            H2O_STRUCT_FROM_MEMBER(struct http_message, link.link, messages->next);
        h2o_linklist_unlink(&message->link.link);
        on_message(loop, message);
    }
}

static void run_loop_once(struct http_loop *loop)
{
    /* -1 is only an interrupted wait. */
    h2o_evloop_run(loop->context.loop, ITERATION_MS);
    http_sweep_loop(loop, clock_monotonic_ns());
}

static void init_loop(struct http_loop *loop)
{
    struct http_server *http = loop->http;
    h2o_context_init(&loop->context, h2o_evloop_create(), &http->config);
    loop->accept_plain = (h2o_accept_ctx_t){.ctx = &loop->context, .hosts = http->config.hosts};
    loop->accept_tls = loop->accept_plain;
    if (http->tls) {
        SSL_CTX_up_ref(http->tls);
        loop->accept_tls.ssl_ctx = http->tls;
    }
    h2o_multithread_register_receiver(loop->context.queue, &loop->receiver, on_messages);
    h2o_linklist_init_anchor(&loop->connections);
    h2o_linklist_init_anchor(&loop->lingering);
    if (getrandom(&loop->random_state, sizeof(loop->random_state), 0) < 0)
        loop->random_state = (uint64_t)clock_wall_ns();
}

static void *run_loop(void *argument)
{
    struct http_loop *loop = argument;
    /* Here and not in the thread that starts the loops: h2o recycles the buffers of the context's
     * own sockets in lists of the thread that created them. */
    init_loop(loop);
    open_listeners(loop);
    sem_post(&loop->http->has_started);
    while (!loop->is_ending)
        run_loop_once(loop);
    start_draining(loop);
    loop->is_cut = true;
    int64_t deadline_ns = clock_monotonic_ns() + END_MS * CLOCK_NS_PER_MS;
    while (!h2o_linklist_is_empty(&loop->connections) && clock_monotonic_ns() < deadline_ns)
        run_loop_once(loop);
    http_connection_end_lingering(loop, INT64_MAX);
    return NULL;
}

static void wait_for_start(struct http_server *http)
{
    while (sem_wait(&http->has_started) != 0) {
    }
}

enum err_code http_server_start(struct http_server *http, struct err *err)
{
    assert(!http->is_started);
    /* Bodies and responses of this size are returned to the system when they are freed; by default
     * the allocator would keep them, up to 32 MiB each, in every thread's heap. */
    mallopt(M_MMAP_THRESHOLD, HTTP_MMAP_BYTES);
    /* The memory for decoding an ordinary profile stays with its thread: returning it each time,
     * and getting zeroed pages each time, was a seventh of an upload's CPU time. */
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    /* There are many more threads than processors, and a heap for each would keep the memory of its
     * largest request: with 500 agents and 20 queries a second that was half of the memory in use.
     */
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    mallopt(M_ARENA_MAX, processors > HEAPS_MIN ? (int)processors : HEAPS_MIN);
    signal(SIGPIPE, SIG_IGN); /* writing to a closed connection is an error, not a signal */
    const struct http_options *options = &http->options;
    http->workers = worker_pool_create(options->worker_count, options->max_queued_requests,
                                       options->max_queued_bytes);
    http->agent_workers = worker_pool_create(options->ingest_count, options->max_queued_requests,
                                             options->max_queued_bytes);
    http->download_workers = worker_pool_create(HTTP_DOWNLOAD_THREADS, options->max_queued_requests,
                                                options->max_queued_bytes);
    http->password_workers = worker_pool_create(PASSWORD_THREADS, options->max_queued_requests,
                                                options->max_queued_bytes);
    http->probes = worker_pool_create(PROBE_WORKERS, PROBE_QUEUE, options->max_queued_bytes);
    http->is_started = true;
    sem_init(&http->has_started, 0, 0);
    sigset_t before;
    thread_signals_block(&before);
    int failure = 0;
    for (int i = 0; i < options->loop_count && !failure; i++) {
        struct http_loop *loop = &http->loops[i];
        loop->http = http;
        failure = pthread_create(&loop->thread, NULL, run_loop, loop);
        loop->is_started = failure == 0;
        if (loop->is_started)
            wait_for_start(http);
    }
    thread_signals_restore(&before);
    if (failure)
        return err_set(err, ERR_IO, "starting a thread failed (%d)", failure);
    return ERR_NONE;
}

static void send_to_loops(struct http_server *http, enum http_message_kind kind, SSL_CTX *tls)
{
    for (int i = 0; i < http->options.loop_count; i++) {
        struct http_loop *loop = &http->loops[i];
        if (!loop->is_started)
            continue;
        struct http_message *message = mem_new(struct http_message, 1);
        message->kind = kind;
        message->tls = tls;
        if (tls)
            SSL_CTX_up_ref(tls);
        h2o_multithread_send_message(&loop->receiver, &message->link);
    }
}

enum err_code http_server_reload(struct http_server *http, struct err *err)
{
    if (has_tls_listener(&http->options)) {
        SSL_CTX *tls;
        enum err_code code = http_tls_load(&http->options, &tls, err);
        if (code)
            return code;
        send_to_loops(http, MESSAGE_CERTIFICATE, tls);
        SSL_CTX_free(tls); /* the loops have their own references */
    }
    return http->access_log ? access_log_reopen(http->access_log, err) : ERR_NONE;
}

static bool wait_for_connections(struct http_server *http, int wait_ms)
{
    int64_t deadline_ns = clock_monotonic_ns() + wait_ms * CLOCK_NS_PER_MS;
    while (atomic_load(&http->connection_count) > 0) {
        if (clock_monotonic_ns() >= deadline_ns)
            return false;
        clock_sleep_ms(5);
    }
    return true;
}

bool http_server_stop(struct http_server *http, int deadline_ms)
{
    bool was_stopping = atomic_exchange(&http->is_stopping, true);
    if (!http->is_started || was_stopping)
        return !http->was_cut;
    close_listening_sockets(http);
    send_to_loops(http, MESSAGE_DRAIN, NULL);
    if (wait_for_connections(http, deadline_ms))
        return true;
    http->was_cut = true;
    send_to_loops(http, MESSAGE_CUT, NULL);
    wait_for_connections(http, END_MS);
    return false;
}

static void fini_loop(struct http_loop *loop)
{
    if (!loop->is_started)
        return;
    pthread_join(loop->thread, NULL);
    h2o_evloop_t *evloop = loop->context.loop;
    /* A connection that h2o still holds keeps its memory; the process is ending. */
    if (h2o_linklist_is_empty(&loop->connections)) {
        h2o_multithread_unregister_receiver(loop->context.queue, &loop->receiver);
        h2o_timeout_unlink(&loop->context.http2._graceful_shutdown_timeout);
        h2o_context_dispose(&loop->context);
        h2o_evloop_run(evloop, 0); /* frees sockets that are closed */
        h2o_evloop_destroy(evloop);
    }
    if (loop->accept_tls.ssl_ctx)
        SSL_CTX_free(loop->accept_tls.ssl_ctx);
    mem_free(loop->listeners);
}

static void for_each_pool(const struct http_server *http, void (*action)(struct worker_pool *pool))
{
    action(http->workers);
    action(http->agent_workers);
    action(http->download_workers);
    action(http->password_workers);
    action(http->probes);
}

void http_server_destroy(struct http_server *http)
{
    if (!http)
        return;
    if (http->is_started) {
        http_server_stop(http, 0);
        /* Handlers that still run need loops that still run, and these release the jobs. */
        for_each_pool(http, worker_pool_stop);
        send_to_loops(http, MESSAGE_END, NULL);
        for (int i = 0; i < http->options.loop_count; i++)
            fini_loop(&http->loops[i]);
        for_each_pool(http, worker_pool_destroy);
    } else {
        close_listening_sockets(http);
    }
    /* A connection that h2o still holds keeps its entry; the process is ending. */
    if (atomic_load(&http->connection_count) == 0)
        connection_table_destroy(http->connections);
    connection_rate_destroy(http->connection_rate);
    response_memory_destroy(http->response_memory);
    mem_free(http->loops);
    access_log_destroy(http->access_log);
    h2o_config_dispose(&http->config);
    if (http->tls)
        SSL_CTX_free(http->tls);
    free_options(&http->options);
    mem_free(http);
}

bool http_server_is_stopping(const struct http_server *http)
{
    return atomic_load(&http->is_stopping);
}

struct http_readiness *http_server_readiness(struct http_server *http)
{
    return &http->readiness;
}

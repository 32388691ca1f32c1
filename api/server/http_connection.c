#include "api/server/http_internal.h"

#include "api/core/metrics.h"
#include "api/server/response_memory.h"
#include "api/server/tcp_info.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

/* Connections accepted per event, so that a flood of them does not delay existing ones. */
enum {
    ACCEPTS_PER_EVENT = 16,
    LOOK_MS = 20,
    SWEEP_MS = 1000,
    PRESSURE_WINDOW_S = 3,
    LINGER_MAX_BYTES = 64 << 20,
    MAX_CLOSING = 128, /* evicted connections that h2o has not closed yet */
    LOG_INTERVAL_S = 60,
};

/* A connection after h2o has closed it, while its peer is still sending. */
struct http_lingering {
    h2o_linklist_t link;
    h2o_socket_t *sock;
    int fd;
    int64_t deadline_ns;
    size_t discarded_bytes;
};

static void end_lingering(struct http_lingering *lingering)
{
    h2o_linklist_unlink(&lingering->link);
    h2o_socket_close(lingering->sock);
    mem_free(lingering);
}

static void discard_input(h2o_socket_t *sock, const char *err)
{
    static __thread char rubbish[64 << 10];
    struct http_lingering *lingering = sock->data;
    ssize_t size = err ? -1 : recv(lingering->fd, rubbish, sizeof(rubbish), MSG_DONTWAIT);
    if (size < 0 && !err && errno == EAGAIN)
        return;
    if (size > 0)
        lingering->discarded_bytes += (size_t)size;
    if (size <= 0 || lingering->discarded_bytes > LINGER_MAX_BYTES)
        end_lingering(lingering);
}

static void start_lingering(struct http_loop *loop, int fd)
{
    shutdown(fd, SHUT_WR);
    struct http_lingering *lingering = mem_new(struct http_lingering, 1);
    lingering->fd = fd;
    lingering->deadline_ns = clock_monotonic_ns() + HTTP_LINGER_MS * CLOCK_NS_PER_MS;
    lingering->sock = h2o_evloop_socket_create(loop->context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    lingering->sock->data = lingering;
    h2o_linklist_insert(&loop->lingering, &lingering->link);
    h2o_socket_read_start(lingering->sock, discard_input);
}

static struct http_lingering *lingering_at(h2o_linklist_t *link)
{
    return H2O_STRUCT_FROM_MEMBER(struct http_lingering, link, link);
}

static void sweep_lingering(struct http_loop *loop, int64_t now_ns)
{
    /* All have the same duration, so the first is the next to end. */
    while (!h2o_linklist_is_empty(&loop->lingering) &&
           lingering_at(loop->lingering.next)->deadline_ns <= now_ns)
        end_lingering(lingering_at(loop->lingering.next));
}

void http_connection_drop_lingering(struct http_loop *loop)
{
    sweep_lingering(loop, INT64_MAX);
}

static struct http_connection *connection_at(h2o_linklist_t *link)
{
    return H2O_STRUCT_FROM_MEMBER(struct http_connection, link, link);
}

/* h2o has closed the socket; this is its last callback. */
static void on_close(void *data)
{
    struct http_connection *connection = data;
    while (!h2o_linklist_is_empty(&connection->jobs)) {
        struct http_job *job =
            H2O_STRUCT_FROM_MEMBER(struct http_job, connection_link, connection->jobs.next);
        h2o_linklist_unlink(&job->connection_link);
        job->connection = NULL;
    }
    h2o_linklist_unlink(&connection->link);
    connection_table_remove(connection->loop->http->connections, &connection->entry);
    if (connection->linger_fd >= 0)
        start_lingering(connection->loop, connection->linger_fd);
    arena_destroy(connection->refusal);
    atomic_fetch_sub(&connection->loop->http->connection_count, 1);
    mem_free(connection);
}

static void count_refusal(struct http_server *http, enum http_refusal reason)
{
    metric_add(http->refusals[reason], 1);
}

/* The address as text; "-" if it is unknown. */
static void name_peer(h2o_socket_t *sock, char ret_text[NI_MAXHOST])
{
    struct sockaddr_storage address = {0};
    socklen_t size = h2o_socket_getpeername(sock, (struct sockaddr *)&address);
    size_t text_size =
        size ? h2o_socket_getnumerichost((struct sockaddr *)&address, size, ret_text) : SIZE_MAX;
    if (text_size == SIZE_MAX)
        snprintf(ret_text, NI_MAXHOST, "-");
}

static int limit_value(const struct http_options *options, enum http_limit limit)
{
    switch (limit) {
    case HTTP_LIMIT_CONNECTIONS:
        return options->max_connections;
    case HTTP_LIMIT_CONNECTIONS_PER_ADDRESS:
        return options->max_connections_per_address;
    case HTTP_LIMIT_RESERVED_CONNECTIONS:
    case HTTP_LIMIT_COUNT:
        break;
    }
    return options->reserved_connections;
}

void http_connection_log_limit(struct http_server *http, enum http_limit limit, const char *address)
{
    static const char *const names[HTTP_LIMIT_COUNT] = {
        [HTTP_LIMIT_CONNECTIONS] = "max-connections",
        [HTTP_LIMIT_CONNECTIONS_PER_ADDRESS] = "max-connections-per-address",
        [HTTP_LIMIT_RESERVED_CONNECTIONS] = "reserved-connections",
    };
    int64_t now_ns = clock_monotonic_ns();
    int64_t logged_ns = atomic_load(&http->limit_logged_ns[limit]);
    if (logged_ns && now_ns - logged_ns < LOG_INTERVAL_S * CLOCK_NS_PER_S)
        return;
    if (atomic_compare_exchange_strong(&http->limit_logged_ns[limit], &logged_ns, now_ns))
        log_event(LOG_WARN, "a limit on connections is reached", "limit=%s value=%d address=%s",
                  names[limit], limit_value(&http->options, limit), address);
}

static void log_decision(struct http_server *http, h2o_socket_t *sock,
                         const struct connection_decision *decision)
{
    char peer[NI_MAXHOST];
    bool is_by_address = decision->verdict == CONNECTION_REFUSED_BY_ADDRESS ||
                         decision->eviction == CONNECTION_EVICTED_BY_ADDRESS;
    if (decision->verdict == CONNECTION_ADMITTED && decision->eviction == CONNECTION_EVICTED_NONE)
        return;
    name_peer(sock, peer);
    http_connection_log_limit(
        http, is_by_address ? HTTP_LIMIT_CONNECTIONS_PER_ADDRESS : HTTP_LIMIT_CONNECTIONS, peer);
}

/* The loop that owns the evicted connection closes it after its current iteration. */
static void announce_eviction(struct http_loop *loop, const struct connection_decision *decision)
{
    if (decision->eviction == CONNECTION_EVICTED_NONE)
        return;
    struct http_loop *owner = &loop->http->loops[decision->evicted_owner];
    if (atomic_exchange(&owner->has_evictions, true) || owner == loop)
        return;
    struct http_message *message = mem_new(struct http_message, 1);
    message->kind = MESSAGE_EVICTIONS;
    h2o_multithread_send_message(&owner->receiver, &message->link);
}

static void close_evicted(struct http_loop *loop)
{
    if (!atomic_exchange(&loop->has_evictions, false))
        return;
    for (h2o_linklist_t *link = loop->connections.next, *next; link != &loop->connections;
         link = next) {
        next = link->next;
        struct http_connection *connection = connection_at(link);
        if (connection_is_evicted(&connection->entry))
            http_connection_cut(connection, REFUSAL_COUNT); /* counted when it was evicted */
    }
}

static struct http_connection *create_connection(struct http_loop *loop, h2o_socket_t *sock)
{
    struct sockaddr_storage address = {0};
    struct http_connection *connection = mem_new(struct http_connection, 1);
    connection->loop = loop;
    connection->sock = sock;
    connection->fd = h2o_socket_get_fd(sock);
    connection->linger_fd = -1;
    h2o_socket_getpeername(sock, (struct sockaddr *)&address);
    connection->subscriber = tcp_info_subscriber(&address);
    connection->accepted_ns = connection->progress_ns = clock_monotonic_ns();
    h2o_linklist_init_anchor(&connection->jobs);
    return connection;
}

static void adopt_socket(struct http_connection *connection, h2o_accept_ctx_t *accept)
{
    h2o_linklist_insert(&connection->loop->connections, &connection->link);
    connection->sock->on_close.cb = on_close;
    connection->sock->on_close.data = connection;
    h2o_accept(accept, connection->sock);
}

/* Closes the connection without reading or sending anything: during a flood of connections, a
 * refusal must cost the server less than the connection costs the client. */
static void refuse_connection(struct http_connection *connection, enum http_refusal reason)
{
    struct http_server *http = connection->loop->http;
    h2o_socket_t *sock = connection->sock;
    mem_free(connection);
    atomic_fetch_sub(&http->connection_count, 1);
    count_refusal(http, reason);
    h2o_socket_close(sock);
}

static void accept_connection(struct http_loop *loop, h2o_socket_t *sock, h2o_accept_ctx_t *accept)
{
    struct http_server *http = loop->http;
    struct http_connection *connection = create_connection(loop, sock);
    if (atomic_fetch_add(&http->connection_count, 1) >=
        http->options.max_connections + MAX_CLOSING) {
        refuse_connection(connection, REFUSED_CONNECTIONS);
        return;
    }
    struct connection_decision decision = connection_table_add(
        http->connections, connection->subscriber, (int)(loop - http->loops), &connection->entry);
    log_decision(http, sock, &decision);
    announce_eviction(loop, &decision);
    connection->is_reserved = decision.verdict == CONNECTION_ADMITTED_RESERVED;
    if (decision.eviction == CONNECTION_EVICTED_BY_ADDRESS)
        count_refusal(http, REFUSED_ADDRESS);
    else if (decision.eviction == CONNECTION_EVICTED_BY_TOTAL)
        count_refusal(http, REFUSED_EVICTED);
    if (decision.verdict == CONNECTION_REFUSED_BY_ADDRESS)
        refuse_connection(connection, REFUSED_ADDRESS);
    else if (decision.verdict == CONNECTION_REFUSED_BY_TOTAL)
        refuse_connection(connection, REFUSED_CONNECTIONS);
    else
        adopt_socket(connection, accept);
}

void http_connection_accept(struct http_loop *loop, h2o_socket_t *listener,
                            h2o_accept_ctx_t *accept)
{
    for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
        h2o_socket_t *sock = h2o_evloop_socket_accept(listener);
        if (!sock)
            return;
        accept_connection(loop, sock, accept);
    }
}

void http_connection_begin(struct http_connection *connection, struct http_job *job)
{
    if (h2o_linklist_is_empty(&connection->jobs))
        connection_table_begin(connection->loop->http->connections, &connection->entry);
    h2o_linklist_insert(&connection->jobs, &job->connection_link);
}

void http_connection_end(struct http_connection *connection, struct http_job *job)
{
    h2o_linklist_unlink(&job->connection_link);
    if (h2o_linklist_is_empty(&connection->jobs))
        connection_table_end(connection->loop->http->connections, &connection->entry);
}

void http_connection_authenticate(struct http_connection *connection)
{
    if (connection->entry.is_authenticated)
        return;
    connection->is_reserved = false;
    connection_table_authenticate(connection->loop->http->connections, &connection->entry);
}

struct http_connection *http_connection_of(h2o_req_t *req)
{
    return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

static struct http_job *job_at(h2o_linklist_t *link)
{
    return H2O_STRUCT_FROM_MEMBER(struct http_job, connection_link, link);
}

void http_connection_cut(struct http_connection *connection, enum http_refusal reason)
{
    if (connection->is_cut)
        return;
    connection->is_cut = true;
    for (h2o_linklist_t *link = connection->jobs.next; link != &connection->jobs; link = link->next)
        if (!job_at(link)->has_response_head)
            http_job_cancel(job_at(link));
    if (reason != REFUSAL_COUNT)
        count_refusal(connection->loop->http, reason);
    if (connection->paused_read)
        http_buffers_resume(connection);
    shutdown(connection->fd, SHUT_RDWR);
}

void http_connection_linger(struct http_connection *connection)
{
    if (connection->linger_fd < 0 && !connection->loop->is_cut)
        connection->linger_fd = fcntl(connection->fd, F_DUPFD_CLOEXEC, 3);
}

/* Lets h2o close the connection, as if its peer had gone. */
static void on_refusal_sent(h2o_socket_t *sock, const char *err)
{
    (void)err;
    struct http_connection *connection = sock->on_close.data;
    connection->refused_read(sock, h2o_socket_error_closed);
}

void http_connection_refuse(struct http_connection *connection)
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
    count_refusal(connection->loop->http, REFUSED_BUFFERS);
    http_connection_linger(connection);
    connection->refusal = arena_create();
    struct span response = http_response_to_refused(
        connection->loop, span_of(sock->input->bytes, sock->input->size), connection->refusal);
    h2o_iovec_t piece = h2o_iovec_init(response.data, response.size);
    h2o_socket_write(sock, &piece, 1, on_refusal_sent);
}

static bool is_request_coming(struct http_connection *connection)
{
    if (connection->is_http2)
        return connection->is_receiving;
    return connection->sock->input->size > 0 && h2o_linklist_is_empty(&connection->jobs);
}

/* The bytes of the request after decryption: with the framing of TLS, a record of one byte would
 * count as 23. HTTP/2 is counted less exactly, including its framing. */
static uint64_t request_bytes(const struct http_connection *connection)
{
    return connection->is_http2 ? connection->received_bytes : connection->sock->input->size;
}

/* Marks a connection when the body of a request begins to arrive; the sweep, which runs less often,
 * decides whether it arrives at a good rate. */
static void look_for_body(struct http_connection *connection)
{
    if (!is_request_coming(connection)) {
        connection->has_body = false;
        return;
    }
    size_t held_bytes =
        connection->is_http2 ? connection->stream_bytes : connection->sock->input->size;
    if (connection->has_body || held_bytes < HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE)
        return;
    connection->has_body = true;
    connection_table_set_receiving(connection->loop->http->connections, &connection->entry, true);
}

static void look_for_bodies(struct http_loop *loop)
{
    for (h2o_linklist_t *link = loop->connections.next; link != &loop->connections;
         link = link->next)
        look_for_body(connection_at(link));
}

/* A connection whose reading is paused by the buffer cap counts as receiving: it would receive more
 * if it were read. */
static void note_receiving(struct http_connection *connection, uint64_t received_bytes)
{
    bool is_quick = connection->paused_read || received_bytes - connection->received_bytes >=
                                                   HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE;
    connection_table_set_receiving(connection->loop->http->connections, &connection->entry,
                                   is_quick && is_request_coming(connection));
}

/* Closes a connection whose request arrives slower than the minimal rate over slow_timeout_s. */
static void check_rate(struct http_connection *connection, int64_t now_ns)
{
    if (connection->window_ns == 0) {
        connection->window_ns = now_ns;
        connection->window_bytes = request_bytes(connection);
        return;
    }
    int64_t window_s = connection->loop->http->options.slow_timeout_s;
    uint64_t bytes_per_s = HTTP_MIN_BYTES_PER_S;
    /* Uploads that may continue must be quick: the others wait for them. */
    if (http_buffers_are_wanted(connection)) {
        window_s = window_s < PRESSURE_WINDOW_S ? window_s : PRESSURE_WINDOW_S;
        bytes_per_s = HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE;
    }
    if (now_ns - connection->window_ns < window_s * CLOCK_NS_PER_S)
        return;
    uint64_t passed_s = (uint64_t)((now_ns - connection->window_ns) / CLOCK_NS_PER_S);
    if (request_bytes(connection) - connection->window_bytes < passed_s * bytes_per_s)
        http_connection_cut(connection, REFUSED_SLOW);
    connection->window_ns = 0;
}

/* Whether the peer has to read before more can be sent. With HTTP/2 nothing is written while the
 * peer's windows are 0. */
static bool is_waiting_for_reader(const struct http_connection *connection)
{
    bool is_waiting = connection->sock->_cb.write != NULL;
    for (h2o_linklist_t *link = connection->jobs.next;
         !is_waiting && connection->is_http2 && link != &connection->jobs; link = link->next)
        is_waiting = job_at(link)->has_unsent_piece;
    return is_waiting;
}

static bool is_handling(const struct http_connection *connection)
{
    bool is_handled = false;
    for (h2o_linklist_t *link = connection->jobs.next; !is_handled && link != &connection->jobs;
         link = link->next)
        is_handled = !job_at(link)->has_unsent_piece;
    return is_handled;
}

static bool reads_large_response(const struct http_connection *connection)
{
    if (!is_waiting_for_reader(connection))
        return false;
    for (h2o_linklist_t *link = connection->jobs.next; link != &connection->jobs;
         link = link->next) {
        const struct http_job *job = job_at(link);
        if (job->has_response_head && job->response_holder)
            return true;
    }
    return false;
}

/* Closes a connection whose peer reads a large response slowly while such responses fill a quarter
 * of their cap, half of what clients without credentials may hold. */
static void check_taking(struct http_connection *connection, int64_t now_ns)
{
    const struct http_server *http = connection->loop->http;
    bool is_pressed =
        response_memory_bytes(http->response_memory) > http->options.max_buffered_bytes / 4;
    int64_t passed_ns = now_ns - connection->taking_ns;
    if (!is_pressed || !reads_large_response(connection)) {
        connection->taking_ns = 0;
        return;
    }
    if (connection->taking_ns != 0 && passed_ns < PRESSURE_WINDOW_S * CLOCK_NS_PER_S)
        return;
    uint64_t taken = connection->acked_bytes - connection->taking_acked;
    uint64_t wanted = (uint64_t)(passed_ns / CLOCK_NS_PER_S) * HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE;
    if (connection->taking_ns != 0 && taken < wanted)
        http_connection_cut(connection, REFUSED_UNREAD);
    connection->taking_ns = now_ns;
    connection->taking_acked = connection->acked_bytes;
}

static void check_waiting(struct http_connection *connection, int64_t now_ns)
{
    for (h2o_linklist_t *link = connection->jobs.next; link != &connection->jobs; link = link->next)
        http_job_check_waiting(job_at(link), now_ns);
}

/*
 * While a request of HTTP/1 is being handled, libh2o reads nothing and does not notice that its
 * peer has gone; it detects that itself for HTTP/2 and while it is writing. Half-closed TLS
 * connections are of no use: a peer that has closed its direction has gone, or can send the request
 * again.
 */
static bool has_gone_meanwhile(struct http_connection *connection)
{
    if (connection->is_http2 || h2o_linklist_is_empty(&connection->jobs) ||
        job_at(connection->jobs.next)->has_response_head)
        return false;
    return tcp_info_has_ended(connection->fd);
}

static void sweep_connection(struct http_connection *connection, int64_t now_ns)
{
    const struct http_options *options = &connection->loop->http->options;
    uint64_t received, acked;
    if (has_gone_meanwhile(connection)) {
        http_connection_cut(connection, REFUSED_GONE);
        return;
    }
    if (!tcp_info_progress(connection->fd, &received, &acked))
        return;
    bool is_writing = is_waiting_for_reader(connection);
    bool is_handled = is_handling(connection);
    if (received != connection->received_bytes || acked != connection->acked_bytes ||
        connection->paused_read || (is_handled && !is_writing))
        connection->progress_ns = now_ns;
    /* An upload that makes progress should not be closed for others. */
    if (!is_handled)
        note_receiving(connection, received);
    connection->received_bytes = received;
    connection->acked_bytes = acked;
    check_taking(connection, now_ns);
    int64_t quiet_ns = now_ns - connection->progress_ns;
    if (connection->paused_read) {
        if (now_ns - connection->paused_ns > options->slow_timeout_s * CLOCK_NS_PER_S)
            http_connection_refuse(connection);
        return;
    }
    if (is_request_coming(connection))
        check_rate(connection, now_ns);
    else
        connection->window_ns = 0;
    if (is_writing && quiet_ns > options->send_timeout_s * CLOCK_NS_PER_S)
        http_connection_cut(connection, REFUSED_UNREAD);
    else if (!is_writing && !is_handled && quiet_ns > options->idle_timeout_s * CLOCK_NS_PER_S)
        http_connection_cut(connection, REFUSED_IDLE);
}

/* Whether no request is arriving and none is being handled. */
static bool is_idle(struct http_connection *connection)
{
    return h2o_linklist_is_empty(&connection->jobs) && !connection->sock->_cb.write &&
           connection->sock->input->size == 0 && connection->stream_bytes == 0;
}

/* A peer that has not read earlier responses does not read a refusal either. */
static void check_refused(struct http_connection *connection, int64_t now_ns)
{
    bool is_late = now_ns - connection->refused_ns > HTTP_LINGER_MS * CLOCK_NS_PER_MS;
    if (connection->refused_read && (is_late || connection->loop->is_cut))
        shutdown(connection->fd, SHUT_RDWR);
}

static void sweep_connections(struct http_loop *loop, int64_t now_ns)
{
    sweep_lingering(loop, now_ns);
    for (h2o_linklist_t *link = loop->connections.next, *next; link != &loop->connections;
         link = next) {
        next = link->next;
        struct http_connection *connection = connection_at(link);
        check_waiting(connection, now_ns);
        if (connection->is_cut) {
            check_refused(connection, now_ns);
            continue;
        }
        if (loop->is_cut || (loop->is_draining && is_idle(connection)))
            http_connection_cut(connection, REFUSAL_COUNT);
        else
            sweep_connection(connection, now_ns);
    }
}

void http_connection_watch(struct http_loop *loop, int64_t now_ns)
{
    close_evicted(loop);
    /* A connection may receive as many bytes as a kernel buffer holds per iteration of the loop, so
     * near the cap the check runs after each read. */
    if (now_ns >= loop->next_look_ns || loop->is_filling) {
        http_buffers_look(loop);
        look_for_bodies(loop);
        loop->next_look_ns = now_ns + LOOK_MS * CLOCK_NS_PER_MS;
    }
    if (now_ns >= loop->next_sweep_ns) {
        sweep_connections(loop, now_ns);
        int64_t every_ms = loop->is_draining ? 50 : SWEEP_MS;
        loop->next_sweep_ns = now_ns + every_ms * CLOCK_NS_PER_MS;
    }
}

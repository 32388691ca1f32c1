#include "api/server/http_internal.h"

#include "api/core/metrics.h"
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

enum {
    ACCEPTS_PER_EVENT = 16, /* so that a flood of connections does not delay existing ones */
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

void http_connection_end_lingering(struct http_loop *loop, int64_t until_ns)
{
    /* All have the same duration, so the first is the next to end. */
    while (!h2o_linklist_is_empty(&loop->lingering) &&
           lingering_at(loop->lingering.next)->deadline_ns <= until_ns)
        end_lingering(lingering_at(loop->lingering.next));
}

/* h2o has closed the socket; this is its last callback. */
static void on_close(void *data)
{
    struct http_connection *connection = data;
    while (!h2o_linklist_is_empty(&connection->jobs)) {
        struct http_job *job = http_job_at(connection->jobs.next);
        h2o_linklist_unlink(&job->connection_link);
        job->connection = NULL;
    }
    h2o_linklist_unlink(&connection->link);
    struct http_server *http = connection->loop->http;
    connection_table_remove(http->connections, &connection->entry);
    if (!connection->has_handshake && http->connection_rate)
        connection_rate_charge_failed(http->connection_rate, connection->site);
    if (connection->linger_fd >= 0)
        start_lingering(connection->loop, connection->linger_fd);
    arena_destroy(connection->refusal);
    atomic_fetch_sub(&http->connection_count, 1);
    mem_free(connection);
}

void http_connection_count_refusal(struct http_server *http, enum http_refusal reason)
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
    case HTTP_LIMIT_NEW_CONNECTIONS_PER_ADDRESS:
        return options->max_new_connections_per_address;
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
        [HTTP_LIMIT_NEW_CONNECTIONS_PER_ADDRESS] = "max-new-connections-per-address",
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
    connection->site = tcp_info_site(connection->subscriber);
    connection->accepted_ns = connection->progress_ns = clock_monotonic_ns();
    h2o_linklist_init_anchor(&connection->jobs);
    return connection;
}

static void adopt_socket(struct http_connection *connection, h2o_accept_ctx_t *accept)
{
    connection->has_handshake = !accept->ssl_ctx;
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
    http_connection_count_refusal(http, reason);
    h2o_socket_close(sock);
}

/* Whether the site may open a connection now. */
static bool is_in_rate(const struct http_connection *connection)
{
    struct http_server *http = connection->loop->http;
    char peer[NI_MAXHOST];
    if (!http->connection_rate || connection_rate_take(http->connection_rate, connection->site))
        return true;
    name_peer(connection->sock, peer);
    http_connection_log_limit(http, HTTP_LIMIT_NEW_CONNECTIONS_PER_ADDRESS, peer);
    return false;
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
    if (!is_in_rate(connection)) {
        refuse_connection(connection, REFUSED_RATE);
        return;
    }
    struct connection_decision decision = connection_table_add(
        http->connections, connection->subscriber, (int)(loop - http->loops), &connection->entry);
    log_decision(http, sock, &decision);
    announce_eviction(loop, &decision);
    connection->is_reserved = decision.verdict == CONNECTION_ADMITTED_RESERVED;
    if (decision.eviction == CONNECTION_EVICTED_BY_ADDRESS)
        http_connection_count_refusal(http, REFUSED_ADDRESS);
    else if (decision.eviction == CONNECTION_EVICTED_BY_TOTAL)
        http_connection_count_refusal(http, REFUSED_EVICTED);
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
    struct http_server *http = connection->loop->http;
    connection->is_reserved = false;
    if (http->connection_rate)
        connection_rate_give_back(http->connection_rate, connection->site);
    connection_table_authenticate(http->connections, &connection->entry);
}

struct http_connection *http_connection_of(h2o_req_t *req)
{
    return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

struct http_job *http_connection_find_job(const struct http_connection *connection,
                                          const h2o_req_t *req)
{
    for (h2o_linklist_t *link = connection->jobs.next; link != &connection->jobs;
         link = link->next) {
        if (http_job_at(link)->req == req)
            return http_job_at(link);
    }
    return NULL;
}

void http_connection_resume(struct http_connection *connection)
{
    h2o_socket_cb on_read = connection->paused_read;
    connection->paused_read = NULL;
    connection->window_ns = 0;
    h2o_socket_read_start(connection->sock, on_read);
}

void http_connection_cut(struct http_connection *connection, enum http_refusal reason)
{
    if (connection->is_cut)
        return;
    connection->is_cut = true;
    for (h2o_linklist_t *link = connection->jobs.next; link != &connection->jobs; link = link->next)
        if (!http_job_at(link)->has_response_head)
            http_job_cancel(http_job_at(link));
    if (reason != REFUSAL_COUNT)
        http_connection_count_refusal(connection->loop->http, reason);
    if (connection->paused_read)
        http_connection_resume(connection);
    shutdown(connection->fd, SHUT_RDWR);
}

void http_connection_linger(struct http_connection *connection)
{
    if (connection->linger_fd < 0 && !connection->loop->is_cut)
        connection->linger_fd = fcntl(connection->fd, F_DUPFD_CLOEXEC, 3);
}

#include "api/server/http_internal.h"

#include "api/server/response_memory.h"
#include "api/server/tcp_info.h"
#include "lib/base/clock.h"

#include <unistd.h>

enum {
    LOOK_MS = 20,
    SWEEP_MS = 1000,
    PRESSURE_WINDOW_S = 3,
};

static void close_evicted(struct http_loop *loop)
{
    if (!atomic_exchange(&loop->has_evictions, false))
        return;
    for (h2o_linklist_t *link = loop->connections.next, *next; link != &loop->connections;
         link = next) {
        next = link->next;
        struct http_connection *connection = http_connection_at(link);
        if (connection_is_evicted(&connection->entry))
            http_connection_cut(connection, REFUSAL_COUNT); /* counted when it was evicted */
    }
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
        look_for_body(http_connection_at(link));
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
        is_waiting = http_job_at(link)->has_unsent_piece;
    return is_waiting;
}

static bool is_handling(const struct http_connection *connection)
{
    bool is_handled = false;
    for (h2o_linklist_t *link = connection->jobs.next; !is_handled && link != &connection->jobs;
         link = link->next)
        is_handled = !http_job_at(link)->has_unsent_piece;
    return is_handled;
}

/* The number of bytes to be sent for which a job holds memory: a file is sent piece by piece. */
static uint64_t bytes_to_send(const struct http_job *job)
{
    return job->response.body_kind == RESPONSE_FILE ? job->charged.own : job->response.bytes.size;
}

/* The first job whose large response the peer reads; NULL: it reads none. *ret_bytes_per_s: the
 * rate at which it must read all of them. */
static const struct http_job *find_large_response(const struct http_connection *connection,
                                                  uint64_t *ret_bytes_per_s)
{
    struct response_memory *memory = connection->loop->http->response_memory;
    const struct http_job *first = NULL;
    *ret_bytes_per_s = 0;
    if (!is_waiting_for_reader(connection))
        return NULL;
    for (h2o_linklist_t *link = connection->jobs.next; link != &connection->jobs;
         link = link->next) {
        const struct http_job *job = http_job_at(link);
        if (!job->has_response_head || !job->response_holder)
            continue;
        const unsigned time_s = response_memory_time_to_read_s(memory, job->response_holder);
        *ret_bytes_per_s += time_s ? bytes_to_send(job) / time_s : 0;
        first = first ? first : job;
    }
    if (*ret_bytes_per_s < HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE)
        *ret_bytes_per_s = HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE;
    return first;
}

/* Closes a connection whose peer reads a large response slowly while such responses fill a quarter
 * of their cap, half of what clients without credentials may hold. The fuller the memory, the
 * faster large responses must be read (response_memory.h). */
static void check_taking(struct http_connection *connection, int64_t now_ns)
{
    const struct http_server *http = connection->loop->http;
    uint64_t bytes_per_s;
    bool is_pressed =
        response_memory_bytes(http->response_memory) > http->options.max_buffered_bytes / 4;
    int64_t passed_ns = now_ns - connection->taking_ns;
    const struct http_job *large =
        is_pressed ? find_large_response(connection, &bytes_per_s) : NULL;
    if (!large) {
        connection->taking_ns = 0;
        return;
    }
    if (connection->taking_ns != 0 && passed_ns < PRESSURE_WINDOW_S * CLOCK_NS_PER_S)
        return;
    uint64_t taken = connection->acked_bytes - connection->taking_acked;
    if (connection->taking_ns != 0 &&
        taken < (uint64_t)(passed_ns / CLOCK_NS_PER_S) * bytes_per_s) {
        response_memory_note_slow(http->response_memory, &large->request);
        http_connection_cut(connection, REFUSED_UNREAD);
    }
    connection->taking_ns = now_ns;
    connection->taking_acked = connection->acked_bytes;
}

/* A peer that reads a response slowly may be disconnected for new connections when all are in use.
 * The rate is measured since the last sweep. */
static void note_stalled(struct http_connection *connection, uint64_t acked)
{
    const bool is_stalled = is_waiting_for_reader(connection) &&
                            !(connection->is_http2 && is_handling(connection)) &&
                            acked - connection->acked_bytes < HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE;
    connection_table_set_stalled(connection->loop->http->connections, &connection->entry,
                                 is_stalled);
}

static void check_waiting(struct http_connection *connection, int64_t now_ns)
{
    for (h2o_linklist_t *link = connection->jobs.next; link != &connection->jobs; link = link->next)
        http_job_check_waiting(http_job_at(link), now_ns);
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
        http_job_at(connection->jobs.next)->has_response_head)
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
    note_stalled(connection, acked);
    connection->received_bytes = received;
    connection->acked_bytes = acked;
    check_taking(connection, now_ns);
    int64_t quiet_ns = now_ns - connection->progress_ns;
    if (connection->paused_read) {
        if (now_ns - connection->paused_ns > options->slow_timeout_s * CLOCK_NS_PER_S)
            http_response_refuse(connection);
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
    http_connection_end_lingering(loop, now_ns);
    for (h2o_linklist_t *link = loop->connections.next, *next; link != &loop->connections;
         link = next) {
        next = link->next;
        struct http_connection *connection = http_connection_at(link);
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

void http_sweep_loop(struct http_loop *loop, int64_t now_ns)
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

#include "api/server/http_internal.h"

#include "api/server/tcp_info.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <stdlib.h>

/* An upload that holds more than HTTP_PRESSURE_FREE_BYTES. */
struct upload {
    struct http_connection *connection;
    size_t age;  /* its index among the loop's connections, oldest first */
    size_t rank; /* how many older uploads of the same address there are */
};

/* Uploads in the order in which they may continue. */
struct line {
    struct upload *uploads;
    size_t count;
};

/* An input buffer that http_request.c has taken leaves an empty one, which only claims the size
 * that h2o will consume. */
static size_t input_bytes(const struct http_connection *connection)
{
    return connection->is_body_taken ? 0 : connection->sock->input->size;
}

static size_t held_bytes(const struct http_connection *connection)
{
    return input_bytes(connection) + connection->stream_bytes;
}

/* A stream whose request has not been processed yet is still being received. */
static int look_at_stream(h2o_req_t *req, void *unused)
{
    (void)unused;
    struct http_connection *connection = http_connection_of(req);
    connection->is_http2 = true;
    connection->is_receiving |= req->pathconf == NULL;
    return 0;
}

/*
 * The memory of HTTP/2 streams is not visible from outside (h2o's header for it needs files that
 * the package lacks), so it is estimated: the bytes received while some stream was being received,
 * minus the bodies that were handed over. It includes framing and headers, so it is never too
 * small.
 */
static void estimate_stream_bytes(struct http_connection *connection)
{
    uint64_t received, acked;
    connection->stream_bytes = 0;
    if (!connection->is_receiving || !tcp_info_progress(connection->fd, &received, &acked)) {
        connection->streams_base = 0;
        return;
    }
    if (connection->streams_base == 0)
        connection->streams_base = received;
    if (received > connection->streams_base)
        connection->stream_bytes = received - connection->streams_base;
}

static void look_at_streams(struct http_loop *loop)
{
    if (!loop->http->options.enable_http2)
        return;
    for (h2o_linklist_t *link = loop->connections.next; link != &loop->connections;
         link = link->next)
        http_connection_at(link)->is_receiving = false;
    loop->http->config.http2.callbacks.foreach_request(&loop->context, look_at_stream, NULL);
    for (h2o_linklist_t *link = loop->connections.next; link != &loop->connections;
         link = link->next) {
        if (http_connection_at(link)->is_http2)
            estimate_stream_bytes(http_connection_at(link));
    }
}

static size_t sum_buffered(struct http_loop *loop)
{
    size_t bytes = 0;
    for (h2o_linklist_t *link = loop->connections.next; link != &loop->connections;
         link = link->next)
        bytes += held_bytes(http_connection_at(link));
    return bytes;
}

/* The wait counts from the first pause, even if the upload continued for short times while the
 * buffers were just below the mark. It starts anew if the upload has brought 8 KiB/s since then. */
static void pause_reading(struct http_connection *connection)
{
    size_t bytes = connection->sock->input->size;
    int64_t now_ns = clock_monotonic_ns();
    int64_t passed_ms = (now_ns - connection->paused_ns) / CLOCK_NS_PER_MS;
    size_t wanted = (size_t)passed_ms * HTTP_MIN_BYTES_PER_S_UNDER_PRESSURE / 1000;
    if (connection->paused_ns == 0 || bytes - connection->paused_bytes >= wanted) {
        connection->paused_ns = now_ns;
        connection->paused_bytes = bytes;
    }
    connection->paused_read = connection->sock->_cb.read;
    connection->window_ns = 0;
    h2o_socket_read_stop(connection->sock);
}

/* Whether the connection's request has begun and is still being read. */
static bool is_pausable(const struct http_connection *connection)
{
    return !connection->is_http2 && !connection->is_cut &&
           (connection->paused_read || connection->sock->_cb.read) &&
           input_bytes(connection) > HTTP_PRESSURE_FREE_BYTES;
}

/* HTTP/2 streams cannot be paused. */
static bool is_upload(const struct http_connection *connection)
{
    if (connection->is_http2)
        return !connection->is_cut && connection->stream_bytes > HTTP_PRESSURE_FREE_BYTES;
    return is_pausable(connection);
}

static size_t may_grow_by(const struct http_connection *connection)
{
    if (connection->is_http2)
        return HTTP_MAX_BODY_BYTES; /* another stream may always begin */
    size_t held = input_bytes(connection);
    return held < HTTP_MAX_BODY_BYTES ? HTTP_MAX_BODY_BYTES - held : 0;
}

static int compare_numbers(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

static int compare_by_address(const void *left, const void *right)
{
    const struct upload *a = left, *b = right;
    int order = compare_numbers(a->connection->site, b->connection->site);
    return order ? order : compare_numbers(a->age, b->age);
}

static int compare_by_rank(const void *left, const void *right)
{
    const struct upload *a = left, *b = right;
    int order = compare_numbers(a->rank, b->rank);
    return order ? order : compare_numbers(a->age, b->age);
}

static size_t collect_uploads(struct http_loop *loop, struct upload *uploads)
{
    size_t count = 0;
    for (h2o_linklist_t *link = loop->connections.next; link != &loop->connections;
         link = link->next) {
        if (!is_upload(http_connection_at(link)))
            continue;
        if (uploads)
            uploads[count] = (struct upload){.connection = http_connection_at(link), .age = count};
        count++;
    }
    return count;
}

/* Orders the uploads: the oldest of each address, then the second of each that has two, and so on.
 */
static struct line line_up(struct http_loop *loop)
{
    struct line line = {.count = collect_uploads(loop, NULL)};
    line.uploads = mem_new(struct upload, line.count + 1);
    collect_uploads(loop, line.uploads);
    qsort(line.uploads, line.count, sizeof(*line.uploads), compare_by_address);
    for (size_t i = 1; i < line.count; i++) {
        struct upload *upload = &line.uploads[i];
        if (upload->connection->site == upload[-1].connection->site)
            upload->rank = upload[-1].rank + 1;
    }
    qsort(line.uploads, line.count, sizeof(*line.uploads), compare_by_rank);
    return line;
}

/* Refuses the last upload; returns the bytes that it held. */
static size_t refuse_last(struct line *line)
{
    struct http_connection *connection = line->uploads[--line->count].connection;
    size_t bytes = held_bytes(connection);
    http_response_refuse(connection);
    return bytes;
}

/* Refuses uploads from the end, where the address with the most uploads is, in favour of another
 * address that has fewer. Returns the bytes that are free then. */
static size_t refuse_for(struct line *line, const struct upload *upload, size_t free_bytes)
{
    while (free_bytes < may_grow_by(upload->connection)) {
        const struct upload *last = &line->uploads[line->count - 1];
        if (last->rank <= upload->rank || last->connection->site == upload->connection->site)
            break;
        free_bytes += refuse_last(line);
    }
    return free_bytes;
}

/* Refuses uploads of this loop in favour of the first upload of an address in another loop that
 * lacks memory: all uploads of the address with the most may be in this loop. */
static void refuse_for_other_loops(struct http_loop *loop, struct line *line)
{
    size_t freed_bytes = 0;
    for (int i = 0; i < loop->http->options.loop_count; i++) {
        struct http_loop *other = &loop->http->loops[i];
        size_t wanted = other == loop ? 0 : atomic_exchange(&other->wanted_bytes, 0);
        uint64_t wanted_by = atomic_load(&other->wanted_by);
        while (wanted > 0 && line->count > 0) {
            const struct upload *last = &line->uploads[line->count - 1];
            if (last->rank == 0 || last->connection->site == wanted_by)
                break;
            size_t bytes = refuse_last(line);
            freed_bytes += bytes;
            wanted = bytes < wanted ? wanted - bytes : 0;
        }
    }
    atomic_fetch_sub_explicit(&loop->buffered_bytes, freed_bytes, memory_order_relaxed);
}

/* Requests the other loops to free memory. Free bytes are divided among the loops, so each loop has
 * to free the missing bytes. */
static void reclaim_from_other_loops(struct http_loop *loop, const struct upload *upload,
                                     size_t lacking_bytes)
{
    atomic_store(&loop->wanted_by, upload ? upload->connection->site : 0);
    atomic_store(&loop->wanted_bytes, lacking_bytes * (size_t)loop->http->options.loop_count);
}

static void set_going(struct http_connection *connection, bool may_go_on)
{
    if (connection->is_http2 && !may_go_on)
        http_connection_cut(connection, REFUSED_BUFFERS);
    else if (!may_go_on && !connection->paused_read)
        pause_reading(connection);
    else if (may_go_on && connection->paused_read)
        http_connection_resume(connection);
}

/* Pauses the last uploads so that the others can end: each upload that continues may grow to the
 * largest body. The first upload of each loop always continues, so that there is always progress.
 * If it is too slow, the sweep closes its connection, and the next upload is the first. */
static void share_memory(struct http_loop *loop, size_t free_bytes)
{
    struct line line = line_up(loop);
    const struct upload *lacking = NULL;
    size_t lacking_bytes = 0;
    refuse_for_other_loops(loop, &line);
    for (size_t i = 0; i < line.count; i++) {
        const struct upload *upload = &line.uploads[i];
        size_t needed = may_grow_by(upload->connection);
        free_bytes = refuse_for(&line, upload, free_bytes);
        set_going(upload->connection, i == 0 || needed <= free_bytes);
        if (!lacking && i > 0 && upload->rank == 0 && needed > free_bytes) {
            lacking = upload;
            lacking_bytes = needed - free_bytes;
        }
        free_bytes = needed < free_bytes ? free_bytes - needed : 0;
    }
    reclaim_from_other_loops(loop, lacking, lacking_bytes);
    mem_free(line.uploads);
}

static void resume_all(struct http_loop *loop)
{
    for (h2o_linklist_t *link = loop->connections.next, *next; link != &loop->connections;
         link = next) {
        next = link->next;
        if (http_connection_at(link)->paused_read)
            http_connection_resume(http_connection_at(link));
    }
}

/* Above 3/4 of the cap only the first uploads in the order above continue, below it all continue.
 */
static bool is_under_pressure(const struct http_server *http, size_t *ret_free_bytes)
{
    size_t total = 0;
    for (int i = 0; i < http->options.loop_count; i++)
        total += atomic_load_explicit(&http->loops[i].buffered_bytes, memory_order_relaxed);
    size_t cap = http->options.max_buffered_bytes;
    *ret_free_bytes = total < cap ? (cap - total) / (size_t)http->options.loop_count : 0;
    return total > cap - cap / 4;
}

void http_buffers_look(struct http_loop *loop)
{
    look_at_streams(loop);
    size_t bytes = sum_buffered(loop);
    size_t before = atomic_exchange_explicit(&loop->buffered_bytes, bytes, memory_order_relaxed);
    size_t free_bytes;
    if (bytes == 0 && before == 0)
        return; /* nothing can be paused */
    bool is_pressed = is_under_pressure(loop->http, &free_bytes);
    loop->is_filling = bytes > loop->http->options.max_buffered_bytes /
                                   (2 * (size_t)loop->http->options.loop_count);
    if (is_pressed) {
        share_memory(loop, free_bytes);
    } else {
        reclaim_from_other_loops(loop, NULL, 0);
        resume_all(loop);
    }
}

bool http_buffers_are_wanted(const struct http_connection *connection)
{
    size_t free_bytes;
    return held_bytes(connection) > HTTP_PRESSURE_FREE_BYTES &&
           is_under_pressure(connection->loop->http, &free_bytes);
}

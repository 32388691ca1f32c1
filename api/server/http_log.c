#include "api/server/http_internal.h"

#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/http/access_log.h"
#include "api/http/route.h"
#include "lib/base/clock.h"

#include <netdb.h>
#include <string.h>
#include <time.h>

enum {
    LOG_LINE_BYTES = 4 * 4 * HTTP_LOG_TEXT_BYTES + 1024,
    CLIENT_WENT_AWAY = 499,
};

/* Writes quotes, backslashes and bytes that are not printable ASCII as \xHH, as other servers do.
 */
static void append_escaped(struct buf *line, struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
            buf_printf(line, "\\x%02x", byte);
        else
            buf_append_byte(line, byte);
    }
}

static struct span shortened(struct span text)
{
    return text.size > HTTP_LOG_TEXT_BYTES ? span_of(text.data, HTTP_LOG_TEXT_BYTES) : text;
}

static struct span find_field(const h2o_headers_t *headers, const char *name)
{
    ssize_t at = h2o_find_header_by_str(headers, name, strlen(name), -1);
    if (at == -1)
        return SPAN_LITERAL("-");
    return span_of(headers->entries[at].value.base, headers->entries[at].value.len);
}

static void append_field(struct buf *line, const h2o_req_t *req, const char *name)
{
    buf_append_text(line, " \"");
    append_escaped(line, shortened(find_field(&req->headers, name)));
    buf_append_text(line, "\"");
}

static void append_peer(struct buf *line, h2o_req_t *req, const struct http_job *job)
{
    if (job) {
        append_escaped(line, span_text(job->request.address));
        return;
    }
    struct sockaddr_storage address;
    char text[NI_MAXHOST];
    socklen_t size = req->conn->callbacks->get_peername(req->conn, (struct sockaddr *)&address);
    size_t text_size =
        size ? h2o_socket_getnumerichost((struct sockaddr *)&address, size, text) : SIZE_MAX;
    buf_append_span(line, text_size == SIZE_MAX ? SPAN_LITERAL("-") : span_of(text, text_size));
}

static void write_log_line(struct access_log *log, h2o_req_t *req, const struct http_job *job,
                           int status, int64_t duration_ns)
{
    char when[64];
    time_t now = time(NULL);
    struct tm parts;
    strftime(when, sizeof(when), "%d/%b/%Y:%H:%M:%S +0000", gmtime_r(&now, &parts));
    buf_auto line;
    buf_init(&line, LOG_LINE_BYTES);
    append_peer(&line, req, job);
    buf_printf(&line, " - %s [%s] \"",
               job && job->has_response_head && job->user[0] ? job->user : "-", when);
    append_escaped(&line, shortened(span_of(req->input.method.base, req->input.method.len)));
    buf_append_byte(&line, ' ');
    append_escaped(&line, shortened(span_of(req->input.path.base, req->input.path.len)));
    buf_printf(&line, " HTTP/%d.%d\" %d %zu", req->version >> 8, req->version & 0xff, status,
               req->bytes_sent);
    append_field(&line, req, "referer");
    append_field(&line, req, "user-agent");
    buf_printf(&line, " %.6f ", (double)duration_ns / 1e9);
    buf_append_span(&line, find_field(&req->res.headers, "x-request-id"));
    buf_append_byte(&line, '\n');
    if (!buf_failed(&line))
        access_log_append(log, buf_span(&line));
}

void http_log_request(h2o_logger_t *self, h2o_req_t *req)
{
    (void)self;
    struct http_connection *connection = http_connection_of(req);
    struct http_server *http = connection->loop->http;
    const struct http_job *job = http_connection_find_job(connection, req);
    bool has_gone = job && (!job->has_response_head ||
                            atomic_load_explicit(&job->is_cancelled, memory_order_relaxed));
    int status = has_gone ? CLIENT_WENT_AWAY : req->res.status;
    int64_t duration_ns = job ? clock_monotonic_ns() - job->request.start_ns : 0;
    const struct route *route = job ? job->request.route : NULL;
    metrics_observe_request(http->server->metrics, route ? http_method_name(route->method) : "",
                            route ? route->pattern : "none", status, duration_ns);
    if (http->access_log)
        write_log_line(http->access_log, req, job, status, duration_ns);
}

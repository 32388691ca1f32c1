#include "api/server/http_internal.h"

#include "api/core/metrics.h"
#include "api/core/server.h"
#include "api/http/access_log.h"
#include "api/server/response_memory.h"

#include <stdatomic.h>

static double read_connections(void *context)
{
    struct http_server *http = context;
    return atomic_load(&http->connection_count);
}

static double read_max_connections(void *context)
{
    struct http_server *http = context;
    return http->options.max_connections;
}

static double read_max_per_address(void *context)
{
    struct http_server *http = context;
    return http->options.max_connections_per_address;
}

static double read_max_new_per_address(void *context)
{
    struct http_server *http = context;
    return http->options.max_new_connections_per_address;
}

static double read_reserved(void *context)
{
    struct http_server *http = context;
    return http->options.reserved_connections;
}

static double read_jobs(void *context)
{
    struct http_server *http = context;
    return atomic_load(&http->job_count);
}

static double read_queue(void *context)
{
    struct http_server *http = context;
    return worker_queue_depth(http->workers) + worker_queue_depth(http->agent_workers) +
           worker_queue_depth(http->download_workers) + worker_queue_depth(http->password_workers);
}

static double read_running(void *context)
{
    struct http_server *http = context;
    return worker_running_count(http->workers) + worker_running_count(http->agent_workers) +
           worker_running_count(http->download_workers) +
           worker_running_count(http->password_workers);
}

static double read_buffered(void *context)
{
    struct http_server *http = context;
    size_t bytes = 0;
    for (int i = 0; i < http->options.loop_count; i++)
        bytes += atomic_load(&http->loops[i].buffered_bytes);
    return (double)bytes;
}

static double read_request_bytes(void *context)
{
    struct http_server *http = context;
    return (double)(worker_bytes(http->workers) + worker_bytes(http->agent_workers) +
                    worker_bytes(http->download_workers) + worker_bytes(http->password_workers));
}

static double read_response_bytes(void *context)
{
    struct http_server *http = context;
    return (double)response_memory_bytes(http->response_memory);
}

static double read_dropped_lines(void *context)
{
    struct http_server *http = context;
    return http->access_log ? (double)access_log_dropped(http->access_log) : 0;
}

void http_metrics_register(struct http_server *http)
{
    static const char *const labels[REFUSAL_COUNT] = {
        [REFUSED_CONNECTIONS] = "reason=\"connections\"",
        [REFUSED_ADDRESS] = "reason=\"address\"",
        [REFUSED_RATE] = "reason=\"rate\"",
        [REFUSED_KEYS] = "reason=\"keys\"",
        [REFUSED_EVICTED] = "reason=\"evicted\"",
        [REFUSED_IDLE] = "reason=\"idle\"",
        [REFUSED_SLOW] = "reason=\"slow\"",
        [REFUSED_UNREAD] = "reason=\"unread\"",
        [REFUSED_CANCELS] = "reason=\"cancels\"",
        [REFUSED_BUFFERS] = "reason=\"buffers\"",
        [REFUSED_GONE] = "reason=\"gone\"",
    };
    struct metrics *metrics = http->server->metrics;
    for (int i = 0; i < REFUSAL_COUNT; i++)
        http->refusals[i] = metrics_counter(metrics, "perfolio_http_connections_cut_total",
                                            labels[i], "Connections closed by the server.");
    http->failed_reads = metrics_counter(metrics, "perfolio_http_failed_reads_total", "",
                                         "Files whose reading failed while being sent.");
    metrics_gauge(metrics, "perfolio_http_connections", "", "Open connections.", read_connections,
                  http);
    static const char limit_name[] = "perfolio_http_connections_limit";
    static const char limit_help[] = "Limits on connections; 0: none.";
    metrics_gauge(metrics, limit_name, "limit=\"max-connections\"", limit_help,
                  read_max_connections, http);
    metrics_gauge(metrics, limit_name, "limit=\"max-connections-per-address\"", limit_help,
                  read_max_per_address, http);
    metrics_gauge(metrics, limit_name, "limit=\"max-new-connections-per-address\"", limit_help,
                  read_max_new_per_address, http);
    metrics_gauge(metrics, limit_name, "limit=\"reserved-connections\"", limit_help, read_reserved,
                  http);
    metrics_gauge(metrics, "perfolio_http_requests_in_flight", "", "Requests being handled.",
                  read_jobs, http);
    metrics_gauge(metrics, "perfolio_http_queue_depth", "", "Requests waiting for a worker.",
                  read_queue, http);
    metrics_gauge(metrics, "perfolio_http_workers_busy", "", "Workers at work.", read_running,
                  http);
    metrics_gauge(metrics, "perfolio_http_buffered_bytes", "",
                  "Request bytes received and not yet passed to a worker.", read_buffered, http);
    metrics_gauge(metrics, "perfolio_http_request_bytes", "",
                  "Memory of requests that are queued, put aside or being handled.",
                  read_request_bytes, http);
    metrics_gauge(metrics, "perfolio_http_response_bytes", "",
                  "Memory of large responses that their peers have not read yet.",
                  read_response_bytes, http);
    metrics_gauge(metrics, "perfolio_access_log_dropped_lines", "",
                  "Access log lines that could not be written in time.", read_dropped_lines, http);
}

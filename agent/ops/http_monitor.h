/*
 * http_monitor: serves GET /metrics and GET /healthz on its own thread, so that a slow client never
 * delays a sample.
 *
 * It listens only on a loopback port or a unix socket, because it requires no token. /metrics
 * returns the text of the last http_monitor_publish. /healthz returns 200 if that call was less
 * than 30 s ago, otherwise 503, so that a hanging agent is detected. One connection at a time, one
 * request per connection, with limits on size and time. Threads: any.
 */
#ifndef AGENT_OPS_HTTP_MONITOR_H
#define AGENT_OPS_HTTP_MONITOR_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

struct http_monitor;

/* address: "127.0.0.1:PORT", "[::1]:PORT" (port 0: any, which is logged) or "unix:/PATH". A socket
 * that an earlier agent left is replaced. http_monitor_check only checks the form of the address.
 * Errors: ERR_INVALID (an address of another form); http_monitor_start also ERR_IO. */
enum err_code http_monitor_check(const char *address, struct err *err) MUST_USE;
enum err_code http_monitor_start(const char *address, struct http_monitor **ret_monitor,
                                 struct err *err) MUST_USE;
void http_monitor_stop(struct http_monitor *monitor); /* NULL is a no-op */

/* Sets the content of /metrics, in the text format of Prometheus; it is copied. */
void http_monitor_publish(struct http_monitor *monitor, struct span metrics);

enum http_monitor_response {
    HTTP_MONITOR_RESPONSE_METRICS,
    HTTP_MONITOR_RESPONSE_HEALTH,
    HTTP_MONITOR_RESPONSE_BAD_REQUEST,
    HTTP_MONITOR_RESPONSE_NOT_FOUND,
    HTTP_MONITOR_RESPONSE_OTHER_METHOD,
};

/* The response to a request with that head, which is untrusted. */
enum http_monitor_response http_monitor_read_request(struct span head);

#endif

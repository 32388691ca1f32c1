/*
 * monitor: answers GET /metrics and GET /healthz for whoever watches the agent, on a thread of its
 * own, so that a slow reader never delays a sample.
 *
 * It listens on a port of this machine's loopback or on a unix socket and nowhere else, since it
 * asks for no token. What it says was given to it last; /healthz is 200 as long as that was not
 * too long ago, so that an agent that hangs is noticed. One connection at a time, each with one
 * request, a bound on its size and a time limit. Threads: any.
 */
#ifndef AGENT_OPS_HTTP_MONITOR_H
#define AGENT_OPS_HTTP_MONITOR_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct http_monitor;

/* address: "127.0.0.1:PORT", "[::1]:PORT" (0: any port, which the log tells) or "unix:/PATH". A
 * socket that an agent left behind is replaced. Handles: ERR_INVALID (another address), ERR_IO;
 * the check, ERR_INVALID alone. */
enum err_code http_monitor_check(const char *address, struct err *err) MUST_USE;
enum err_code http_monitor_start(const char *address, struct http_monitor **ret_monitor,
                                 struct err *err) MUST_USE;
void http_monitor_stop(struct http_monitor *monitor); /* NULL is a no-op */

/* What /metrics says from now on, copied: the text format of Prometheus. */
void http_monitor_publish(struct http_monitor *monitor, struct span metrics);

enum http_monitor_answer {
    HTTP_MONITOR_ANSWER_METRICS,
    HTTP_MONITOR_ANSWER_HEALTH,
    HTTP_MONITOR_ANSWER_BAD_REQUEST,
    HTTP_MONITOR_ANSWER_NOT_FOUND,
    HTTP_MONITOR_ANSWER_OTHER_METHOD,
};

/* What is asked for by the head of a request, which is a stranger's bytes. */
enum http_monitor_answer http_monitor_read_request(struct span head);

#endif

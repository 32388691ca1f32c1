/*
 * access_log: one line per completed request, written by a thread of its own, so that neither a
 * slow disk nor a stalled pipe can block a loop thread. Threads: any.
 */
#ifndef API_HTTP_ACCESS_LOG_H
#define API_HTTP_ACCESS_LOG_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

struct access_log;

/* Appends to path, created with mode 0640; "-" is standard error. Errors: ERR_IO. */
enum err_code access_log_create(const char *path, struct access_log **ret_log,
                                struct err *err) MUST_USE;
/* Writes the queued lines and ends. NULL is a no-op. */
void access_log_destroy(struct access_log *log);
/* Called after logrotate has renamed the file: later lines go to the new one. On failure the old
 * file stays open. Errors: ERR_IO. */
enum err_code access_log_reopen(struct access_log *log, struct err *err) MUST_USE;
/* Queues one line, including its newline. While 4 MiB are queued, lines are dropped and counted. */
void access_log_append(struct access_log *log, struct span line);
/* The number of dropped lines, for metrics. */
int64_t access_log_dropped(struct access_log *log);

#endif

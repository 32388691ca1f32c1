/*
 * access_log: one line per answered request, written by a thread of its own, so that neither a slow
 * disk nor a stalled pipe can hold a loop. Threads: any.
 */
#ifndef API_HTTP_ACCESS_LOG_H
#define API_HTTP_ACCESS_LOG_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct access_log;

/* Appends to path, created with mode 0640; "-" is standard error. Handles: ERR_IO. */
enum err_code access_log_create(const char *path, struct access_log **ret_log,
                                struct err *err) MUST_USE;
/* Writes what is waiting and ends. NULL is a no-op. */
void access_log_destroy(struct access_log *log);
/* After logrotate has renamed the file: what is appended from now on goes to the new one. On
 * failure the old file stays open. Handles: ERR_IO. */
enum err_code access_log_reopen(struct access_log *log, struct err *err) MUST_USE;
/* Queues one line, newline included; when 4 MiB are waiting it is dropped and counted. */
void access_log_append(struct access_log *log, struct span line);
/* Lines dropped so far, for metrics. */
int64_t access_log_dropped(struct access_log *log);

#endif

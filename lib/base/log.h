/*
 * log: writes one logfmt line per event to standard error.
 *
 * Only api/ and agent/ log, once, where an event is handled. Libraries return errors, and cli/
 * prints messages for its user. A line looks like this:
 *
 *   time=2026-01-02T03:04:05.678Z level=info msg="share created" id=… bytes=123
 *
 * Fields are a printf format of key=value pairs; pass values that may contain blanks or quotes
 * through log_quote. Characters that are not plain (lib/base/plain_text.h) are replaced. Never log
 * a secret: no token, password, cookie or delete token. While nothing reads standard error, lines
 * are dropped; the first line that can be written after that is preceded by one with their number.
 * Threads: any; each line is one write(2).
 */
#ifndef LIB_BASE_LOG_H
#define LIB_BASE_LOG_H

#include <stddef.h>

struct arena;

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level level);

/* fields may be "" and takes printf arguments: log_event(LOG_INFO, "listening", "port=%d",
 * port). */
void log_event(enum log_level level, const char *message, const char *fields, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes text to buffer in double quotes, with quotes and backslashes escaped and the bytes of
 * characters that are not plain (lib/base/plain_text.h) as \xNN. Returns buffer. */
const char *log_quote(const char *text, char *buffer, size_t buffer_bytes);

#endif

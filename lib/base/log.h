/*
 * log: one logfmt line per event to standard error.
 *
 * Only api/, agent/ and cli/ log, once, where an event is handled; library rooms return errors.
 * Lines look like   time=2026-01-02T03:04:05.678Z level=info msg="share created" id=… bytes=123
 * Fields are given as a printf format of key=value pairs; a value that may hold blanks or quotes is
 * passed through log_quote. Whatever is not plain (lib/base/plain_text.h) is replaced. Never a
 * secret: no token, password, cookie or delete token. Threads: any; a line is written with one
 * write(2). The level is the one global of this file.
 */
#ifndef LIB_BASE_LOG_H
#define LIB_BASE_LOG_H

#include <stddef.h>

struct arena;

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_set_level(enum log_level level);

/* fields may be "" and takes printf arguments: log_event(LOG_INFO, "listening", "port=%d", port).
 */
void log_event(enum log_level level, const char *message, const char *fields, ...)
    __attribute__((format(printf, 3, 4)));

/* text in double quotes with quotes and backslashes escaped, and the bytes of all characters that
 * are not plain (lib/base/plain_text.h) as \xNN, in buffer. */
const char *log_quote(const char *text, char *buffer, size_t buffer_bytes);

#endif

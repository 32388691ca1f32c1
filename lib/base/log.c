#include "lib/base/log.h"

#include "lib/base/plain_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, PLAIN_BYTES = 4 /* the longest UTF-8 character */ };

/* The level is process-wide by nature: it is set once at start and only read afterwards. */
static enum log_level current_level = LOG_INFO;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_set_level(enum log_level level)
{
    current_level = level;
}

const char *log_quote(const char *text, char *buffer, size_t buffer_bytes)
{
    size_t at = 0;
    if (buffer_bytes < 8)
        return "\"\"";
    buffer[at++] = '"';
    /* Four bytes are the longest escape, one is the closing quote, one the NUL. */
    for (; *text && at + 6 < buffer_bytes; text++) {
        unsigned char byte = (unsigned char)*text;
        uint32_t point;
        bool is_plain;
        const size_t size =
            plain_text_next(span_of(text, strnlen(text, PLAIN_BYTES)), &point, &is_plain);
        if (byte == '"' || byte == '\\') {
            buffer[at++] = '\\';
            buffer[at++] = (char)byte;
        } else if (!is_plain) {
            at += (size_t)snprintf(buffer + at, buffer_bytes - at, "\\x%02x", byte);
        } else if (at + size + 2 > buffer_bytes) {
            break;
        } else {
            memcpy(buffer + at, text, size);
            at += size;
            text += size - 1;
        }
    }
    buffer[at++] = '"';
    buffer[at] = '\0';
    return buffer;
}

static size_t write_prefix(char *line, enum log_level level, const char *message)
{
    struct timespec now;
    struct tm utc;
    char quoted[512];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t size = strftime(line, LINE_BYTES, "time=%Y-%m-%dT%H:%M:%S", &utc);
    size += (size_t)snprintf(line + size, LINE_BYTES - size, ".%03ldZ level=%s msg=%s",
                             now.tv_nsec / 1000000, level_names[level],
                             log_quote(message, quoted, sizeof(quoted)));
    return size;
}

void log_event(enum log_level level, const char *message, const char *fields, ...)
{
    if (level < current_level)
        return;
    char line[LINE_BYTES];
    size_t size = write_prefix(line, level, message);
    if (fields[0] != '\0') {
        line[size++] = ' ';
        va_list arguments;
        va_start(arguments, fields);
        int added = vsnprintf(line + size, LINE_BYTES - size - 1, fields, arguments);
        va_end(arguments);
        if (added > 0)
            size += strnlen(line + size, LINE_BYTES - size - 1);
    }
    /* Fields that the caller did not quote may contain any bytes, and truncation may cut a
     * character. */
    size = plain_text_clean(line, size);
    line[size++] = '\n';
    /* If standard error is closed there is nowhere to report it. */
    ssize_t written = write(STDERR_FILENO, line, size);
    (void)written;
}

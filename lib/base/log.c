#include "lib/base/log.h"

#include "lib/base/plain_text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, PLAIN_BYTES = 4 /* the longest UTF-8 character */ };

/* The level is process-wide by nature: it is set once at start and only read afterwards. */
static enum log_level current_level = LOG_INFO;

/* Standard error, which all threads share. */
static struct {
    pthread_mutex_t mutex;
    bool is_stalled; /* the last line was dropped */
    uint64_t dropped_count;
} output = {.mutex = PTHREAD_MUTEX_INITIALIZER};

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

/* A terminal that has space for a part of a line would block, so it is opened anew without
 * blocking: the flag would apply to all programs that share the open file. If this user may not
 * open it, lines are written as usual. */
static bool write_to_terminal(const char *line, size_t size, ssize_t *ret_written)
{
    if (!isatty(STDERR_FILENO))
        return false;
    const int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    *ret_written = write(fd, line, size);
    close(fd);
    return true;
}

/*
 * A pipe or a terminal whose reader has stopped would block each thread that logs, so a line that
 * cannot be written within STALL_MS is dropped, and further lines are dropped at once until there
 * is space again. poll reports a pipe as writable when it has space for 4,096 bytes, a whole line.
 */
static void write_line(const char *line, size_t size)
{
    enum { STALL_MS = 200 };
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t written = (ssize_t)size;
    pthread_mutex_lock(&output.mutex);
    output.is_stalled = poll(&ready, 1, output.is_stalled ? 0 : STALL_MS) == 0;
    if (!output.is_stalled && write_to_terminal(line, size, &written))
        output.is_stalled = written < (ssize_t)size;
    else if (!output.is_stalled) /* if standard error is closed there is nowhere to report it */
        written = write(STDERR_FILENO, line, size);
    output.dropped_count += output.is_stalled;
    pthread_mutex_unlock(&output.mutex);
}

static uint64_t take_dropped_count(void)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    pthread_mutex_lock(&output.mutex);
    uint64_t count = 0;
    if (output.is_stalled && poll(&ready, 1, 0) != 0) {
        count = output.dropped_count;
        output.dropped_count = 0;
        output.is_stalled = false;
    }
    pthread_mutex_unlock(&output.mutex);
    return count;
}

static void report_dropped(void)
{
    char line[LINE_BYTES];
    const uint64_t count = take_dropped_count();
    if (!count)
        return;
    size_t size = write_prefix(line, LOG_WARN, "standard error was not read: lines were dropped");
    size += (size_t)snprintf(line + size, sizeof(line) - size, " count=%" PRIu64 "\n", count);
    write_line(line, size);
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
    report_dropped();
    write_line(line, size);
}

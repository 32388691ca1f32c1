#include "api/http/access_log.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/thread_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { MAX_WAITING_BYTES = 4 << 20 };

struct access_log {
    pthread_mutex_t lock;
    pthread_cond_t has_lines;
    struct buf waiting;
    int64_t dropped_count;
    int next_fd; /* >= 0: the writer continues with this one */
    bool is_ending;
    char *path;
    int fd; /* for the writer only */
    pthread_t writer;
};

static enum err_code open_file(const char *path, int *ret_fd, struct err *err)
{
    int fd = span_equal_text(span_text(path), "-")
                 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "opening the access log %s", path);
    *ret_fd = fd;
    return ERR_NONE;
}

/* A full disk loses lines, never requests. */
static void write_all(int fd, struct span bytes)
{
    while (bytes.size > 0) {
        ssize_t written = write(fd, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes = span_of(bytes.data + written, bytes.size - (size_t)written);
    }
}

static void *write_lines(void *argument)
{
    struct access_log *log = argument;
    struct buf lines;
    buf_init(&lines, MAX_WAITING_BYTES);
    pthread_mutex_lock(&log->lock);
    while (!log->is_ending || log->waiting.size > 0) {
        if (log->waiting.size == 0 && log->next_fd < 0) {
            pthread_cond_wait(&log->has_lines, &log->lock);
            continue;
        }
        struct buf taken = log->waiting;
        log->waiting = lines;
        lines = taken;
        int next_fd = log->next_fd;
        log->next_fd = -1;
        pthread_mutex_unlock(&log->lock);
        if (next_fd >= 0) { /* first: lines appended after the reopen belong there */
            close(log->fd);
            log->fd = next_fd;
        }
        write_all(log->fd, buf_span(&lines));
        buf_clear(&lines);
        pthread_mutex_lock(&log->lock);
    }
    pthread_mutex_unlock(&log->lock);
    buf_fini(&lines);
    return NULL;
}

enum err_code access_log_create(const char *path, struct access_log **ret_log, struct err *err)
{
    int fd;
    enum err_code code = open_file(path, &fd, err);
    if (code)
        return code;
    struct access_log *log = mem_new(struct access_log, 1);
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->has_lines, NULL);
    buf_init(&log->waiting, MAX_WAITING_BYTES);
    log->path = mem_strdup(path);
    log->fd = fd;
    log->next_fd = -1;
    sigset_t before;
    thread_signals_block(&before);
    int failure = pthread_create(&log->writer, NULL, write_lines, log);
    thread_signals_restore(&before);
    if (failure) {
        close(fd);
        mem_free(log->path);
        mem_free(log);
        return err_set(err, ERR_IO, "starting the access log's thread failed (%d)", failure);
    }
    *ret_log = log;
    return ERR_NONE;
}

void access_log_destroy(struct access_log *log)
{
    if (!log)
        return;
    pthread_mutex_lock(&log->lock);
    log->is_ending = true;
    pthread_cond_signal(&log->has_lines);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->writer, NULL);
    close(log->fd);
    if (log->next_fd >= 0)
        close(log->next_fd);
    buf_fini(&log->waiting);
    pthread_cond_destroy(&log->has_lines);
    pthread_mutex_destroy(&log->lock);
    mem_free(log->path);
    mem_free(log);
}

enum err_code access_log_reopen(struct access_log *log, struct err *err)
{
    int fd;
    enum err_code code = open_file(log->path, &fd, err);
    if (code)
        return code;
    pthread_mutex_lock(&log->lock);
    int unused_fd = log->next_fd;
    log->next_fd = fd;
    pthread_cond_signal(&log->has_lines);
    pthread_mutex_unlock(&log->lock);
    if (unused_fd >= 0)
        close(unused_fd);
    return ERR_NONE;
}

void access_log_append(struct access_log *log, struct span line)
{
    pthread_mutex_lock(&log->lock);
    if (log->waiting.size + line.size > MAX_WAITING_BYTES)
        log->dropped_count++;
    else
        buf_append_span(&log->waiting, line);
    pthread_cond_signal(&log->has_lines);
    pthread_mutex_unlock(&log->lock);
}

int64_t access_log_dropped(struct access_log *log)
{
    pthread_mutex_lock(&log->lock);
    int64_t count = log->dropped_count;
    pthread_mutex_unlock(&log->lock);
    return count;
}

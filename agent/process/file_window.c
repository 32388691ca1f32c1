#include "agent/process/file_window.h"

#include "lib/base/mem.h"

#include <errno.h>
#include <unistd.h>

void file_window_init(struct file_window *window, int fd, uint64_t limit)
{
    *window = (struct file_window){.fd = fd, .limit = limit};
    window->ahead_bytes = FILE_WINDOW_LEAST_BYTES;
}

void file_window_fini(struct file_window *window)
{
    mem_free(window->buffer);
    window->buffer = NULL;
}

/* Sequential access doubles the read-ahead, a jump resets it. */
static size_t choose_read_bytes(struct file_window *window, uint64_t offset, size_t size)
{
    uint64_t end = window->start + window->bytes;
    if (window->bytes && offset >= window->start && offset <= end) {
        if (window->ahead_bytes < FILE_WINDOW_BYTES)
            window->ahead_bytes *= 2;
    } else {
        window->ahead_bytes = FILE_WINDOW_LEAST_BYTES;
    }
    uint64_t wanted = size > window->ahead_bytes ? size : window->ahead_bytes;
    return wanted < window->limit - offset ? (size_t)wanted : (size_t)(window->limit - offset);
}

const uint8_t *file_window_read(struct file_window *window, uint64_t offset, size_t size)
{
    if (offset > window->limit || size > window->limit - offset || size > FILE_WINDOW_MAX)
        return NULL;
    size_t wanted = choose_read_bytes(window, offset, size);
    if (wanted > window->capacity) {
        window->capacity = wanted;
        window->buffer = mem_resize(window->buffer, window->capacity, 1);
    }
    window->start = offset;
    window->bytes = 0;
    while (window->bytes < wanted) {
        ssize_t count = pread(window->fd, window->buffer + window->bytes, wanted - window->bytes,
                              (off_t)(offset + window->bytes));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        window->bytes += (size_t)count;
    }
    window->read_bytes += window->bytes;
    window->cost_bytes +=
        window->bytes > FILE_WINDOW_LEAST_BYTES ? window->bytes : FILE_WINDOW_LEAST_BYTES;
    return window->bytes >= size ? window->buffer : NULL;
}

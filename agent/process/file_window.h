/*
 * file_window: a part of a file in a buffer, read with pread when it is needed; O(1) memory.
 *
 * The window never maps the file: a mapped file that is truncated raises SIGBUS. While the caller
 * reads in file order, each read is twice as long as the one before; after a jump it is short
 * again. Both sequential and scattered records are therefore cheap. Threads: one.
 */
#ifndef AGENT_PROCESS_FILE_WINDOW_H
#define AGENT_PROCESS_FILE_WINDOW_H

#include <stddef.h>
#include <stdint.h>

enum {
    FILE_WINDOW_LEAST_BYTES = 4 << 10,
    FILE_WINDOW_BYTES = 256 << 10, /* longest read-ahead */
    FILE_WINDOW_MAX = 4 << 20,     /* longest record */
};

struct file_window {
    int fd;
    uint64_t limit; /* offset that reads do not pass */
    uint64_t start; /* offset of the first byte in the buffer */
    size_t bytes;
    size_t ahead_bytes;
    uint64_t read_bytes; /* sum of all reads */
    uint64_t cost_bytes; /* the same, but a read of less than 4 KiB counts as 4 KiB */
    uint8_t *buffer;
    size_t capacity;
};

/* limit: the end of the file, or of a section in it. fd is borrowed. */
void file_window_init(struct file_window *window, int fd, uint64_t limit);
void file_window_fini(struct file_window *window);

/* At least size bytes at offset, valid until the next call. NULL: they are past the limit, cannot
 * be read, or are more than FILE_WINDOW_MAX. */
const uint8_t *file_window_read(struct file_window *window, uint64_t offset, size_t size);

/* The same, without a call when the bytes are in the buffer. */
static inline const uint8_t *file_window_get(struct file_window *window, uint64_t offset,
                                             size_t size)
{
    uint64_t into = offset - window->start;
    if (into <= window->bytes && size <= window->bytes - into)
        return window->buffer + into;
    return file_window_read(window, offset, size);
}

#endif

/*
 * file_window: a part of a file, read when it is asked for; O(1) memory.
 *
 * Reads ahead, twice as far each time, while it is used in the file's order, and little where it
 * is not: records that lie in order and records that are all over the place are both cheap.
 */
#ifndef AGENT_PROCESS_MAPPED_WINDOW_H
#define AGENT_PROCESS_MAPPED_WINDOW_H

#include <stddef.h>
#include <stdint.h>

enum {
    MAPPED_WINDOW_LEAST_BYTES = 4 << 10,
    MAPPED_WINDOW_BYTES = 256 << 10, /* as far as it reads ahead */
    MAPPED_WINDOW_MAX = 4 << 20,     /* the longest record that it gives */
};

struct mapped_window {
    int fd;
    uint64_t limit; /* no byte at or after it is read */
    uint64_t start; /* of what is in the buffer */
    size_t bytes;
    size_t ahead_bytes;
    uint64_t read_bytes; /* of the file, in all */
    uint64_t cost_bytes; /* the same, where a call is a page at least, whatever it brings */
    uint8_t *buffer;
    size_t capacity;
};

/* limit: of the file, or of the section in it. */
void mapped_window_init(struct mapped_window *window, int fd, uint64_t limit);
void mapped_window_fini(struct mapped_window *window);

/* The bytes at offset, at least size of them, valid until the next call; NULL when they are past
 * the limit, cannot be read or are more than MAPPED_WINDOW_MAX. */
const uint8_t *mapped_window_read(struct mapped_window *window, uint64_t offset, size_t size);

static inline const uint8_t *mapped_window_get(struct mapped_window *window, uint64_t offset,
                                               size_t size)
{
    uint64_t into = offset - window->start;
    if (into <= window->bytes && size <= window->bytes - into)
        return window->buffer + into;
    return mapped_window_read(window, offset, size);
}

#endif

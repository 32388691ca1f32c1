/*
 * cursor: reads little-endian numbers from bytes that may be hostile.
 *
 * A read past the end returns 0, moves to the end and sets has_failed, so that a caller checks once
 * after a series of reads. Never reads outside of its bytes. Threads: a cursor belongs to one
 * thread.
 */
#ifndef DEBUGINFOD_CURSOR_H
#define DEBUGINFOD_CURSOR_H

#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *next;
    const uint8_t *end;
    bool has_failed;
};

static inline struct cursor cursor_of(struct span bytes)
{
    return (struct cursor){.next = bytes.data,
                           .end = bytes.size ? bytes.data + bytes.size : bytes.data};
}

/* A cursor from offset to the end of bytes. It has failed already if offset is past the end. */
static inline struct cursor cursor_at(struct span bytes, uint64_t offset)
{
    struct cursor cursor = cursor_of(bytes);
    cursor.has_failed = offset > bytes.size;
    if (offset)
        cursor.next = cursor.has_failed ? cursor.end : cursor.next + offset;
    return cursor;
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->next);
}

static inline bool cursor_fail(struct cursor *cursor)
{
    cursor->has_failed = true;
    cursor->next = cursor->end;
    return false;
}

static inline bool cursor_skip(struct cursor *cursor, uint64_t size)
{
    if (size > cursor_left(cursor))
        return cursor_fail(cursor);
    if (size) /* next may be NULL */
        cursor->next += size;
    return true;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
    if (cursor->next == cursor->end) {
        cursor->has_failed = true;
        return 0;
    }
    return *cursor->next++;
}

/* Reads an unsigned number of 1 to 8 bytes. */
static inline uint64_t cursor_uint(struct cursor *cursor, unsigned bytes)
{
    uint64_t number = 0;
    if (bytes > cursor_left(cursor)) {
        cursor_fail(cursor);
        return 0;
    }
    memcpy(&number, cursor->next, bytes);
    cursor->next += bytes;
    return number;
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
    return (uint16_t)cursor_uint(cursor, 2);
}
static inline uint32_t cursor_u32(struct cursor *cursor)
{
    return (uint32_t)cursor_uint(cursor, 4);
}
static inline uint64_t cursor_u64(struct cursor *cursor)
{
    return cursor_uint(cursor, 8);
}

/* Read LEB128 numbers; bits past 64 are dropped, as all readers do. */
static inline uint64_t cursor_uleb(struct cursor *cursor)
{
    uint64_t number = 0;
    for (unsigned shift = 0; cursor->next < cursor->end; shift += 7) {
        uint8_t byte = *cursor->next++;
        if (shift < 64)
            number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number;
    }
    cursor->has_failed = true;
    return 0;
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
    uint64_t number = 0;
    for (unsigned shift = 0; cursor->next < cursor->end;) {
        uint8_t byte = *cursor->next++;
        if (shift < 64)
            number |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            if (shift < 64 && (byte & 0x40))
                number |= ~UINT64_C(0) << shift;
            return (int64_t)number;
        }
    }
    cursor->has_failed = true;
    return 0;
}

/* Reads a text that ends with NUL; the result excludes the NUL. */
static inline struct span cursor_text(struct cursor *cursor)
{
    size_t left = cursor_left(cursor);
    const uint8_t *nul = left ? memchr(cursor->next, 0, left) : NULL;
    if (!nul) {
        cursor_fail(cursor);
        return (struct span){NULL, 0};
    }
    struct span text = {cursor->next, (size_t)(nul - cursor->next)};
    cursor->next = nul + 1;
    return text;
}

/* Reads the next size bytes; empty if there are fewer. */
static inline struct span cursor_bytes(struct cursor *cursor, uint64_t size)
{
    const uint8_t *data = cursor->next;
    if (!cursor_skip(cursor, size))
        return (struct span){NULL, 0};
    return (struct span){data, (size_t)size};
}

#endif

/*
 * buf: bytes that are owned and grow up to a fixed maximum.
 *
 * A buf that would exceed its maximum keeps its content and sets a flag, so that a series of
 * appends needs one check at its end (buf_failed). Threads: an object belongs to one thread.
 */
#ifndef LIB_BASE_BUF_H
#define LIB_BASE_BUF_H

#include "lib/base/span.h"

struct buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t max_size;
    bool has_failed;
};

/* Starts empty and allocates nothing. buf_fini is safe at any time and may be repeated. */
void buf_init(struct buf *buf, size_t max_size);
void buf_fini(struct buf *buf);
/* Empties the buffer and clears the failure flag, but keeps the memory. */
void buf_clear(struct buf *buf);
/* True when an append since buf_init or buf_clear would have exceeded max_size. */
bool buf_failed(const struct buf *buf);
struct span buf_span(const struct buf *buf);

void buf_append(struct buf *buf, const void *data, size_t size);
void buf_append_span(struct buf *buf, struct span span);
void buf_append_text(struct buf *buf, const char *text);
void buf_append_byte(struct buf *buf, uint8_t byte);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. Control
 * characters, including U+0080 to U+009F, are escaped, so that the output is safe on a terminal. */
void buf_append_json(struct buf *buf, struct span text);
/* Appends text for HTML and XML content and double-quoted attributes. Control characters are
 * dropped. Characters that change the direction of the following text (U+202A to U+202E, U+2066
 * to U+2069) are written as "\u202E", so that a name cannot be made to look like another. */
void buf_append_html(struct buf *buf, struct span text);
/* Appends text, percent-encoded for a query value or path segment. */
void buf_append_url(struct buf *buf, struct span text);
/*
 * Reserves space for size more bytes. The caller fills it and adds the bytes with buf_commit.
 * Returns NULL when max_size would be exceeded. For readers and compressors that write in place.
 */
uint8_t *buf_reserve(struct buf *buf, size_t size);
void buf_commit(struct buf *buf, size_t size);

/* Append little-endian integers, as Perfolio's own formats use them. */
void buf_append_u16(struct buf *buf, uint16_t number);
void buf_append_u32(struct buf *buf, uint32_t number);
void buf_append_u64(struct buf *buf, uint64_t number);
void buf_append_f64(struct buf *buf, double number);

static inline void buf_cleanup(struct buf *buf)
{
    buf_fini(buf);
}
/* buf_auto body; buf_init(&body, MAX); If a return can precede buf_init, write: buf_auto body =
 * {0}; */
#define buf_auto __attribute__((cleanup(buf_cleanup))) struct buf

#endif

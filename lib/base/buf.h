/*
 * buf: bytes. A span is borrowed bytes, a buf is owned bytes that grow up to a stated maximum.
 *
 * A span is not NUL-terminated and lives as long as its owner. A buf that would pass its maximum
 * keeps what it has and remembers that it failed, so that a series of appends needs one check at
 * its end (buf_failed). Threads: an object belongs to one thread.
 */
#ifndef LIB_BASE_BUF_H
#define LIB_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct arena;

struct span {
    const uint8_t *data; /* may be NULL when size is 0 */
    size_t size;
};

static inline struct span span_of(const void *data, size_t size)
{
    return (struct span){.data = data, .size = size};
}
static inline struct span span_text(const char *text)
{
    return span_of(text, strlen(text));
}
#define SPAN_LITERAL(text) ((struct span){(const uint8_t *)(text), sizeof(text) - 1})
/* printf("%.*s", SPAN_PRINT(span)) */
#define SPAN_PRINT(span) (int)(span).size, (const char *)(span).data

bool span_equal(struct span a, struct span b);
bool span_equal_text(struct span a, const char *text);
bool span_starts_with(struct span span, const char *prefix);
bool span_ends_with(struct span span, const char *suffix);
/* Byte order, shorter first where one is the start of the other: <0, 0, >0. */
int span_compare(struct span a, struct span b);
/* Without ASCII white space at both ends. */
struct span span_trim(struct span span);
/* Cuts the first line (without "\n" or "\r\n") off *rest; false when *rest is empty. */
bool span_take_line(struct span *rest, struct span *ret_line);
/* Splits at the first separator; false and *ret_after empty when there is none. */
bool span_split(struct span span, char separator, struct span *ret_before, struct span *ret_after);
/* Whole decimal numbers; false when a byte is no digit, it is empty, or it overflows. */
bool span_parse_u64(struct span span, uint64_t *ret_number);
bool span_parse_i64(struct span span, int64_t *ret_number);
/* Hexadecimal without or with "0x". */
bool span_parse_hex(struct span span, uint64_t *ret_number);
/* Is it well-formed UTF-8 (no overlong forms, no surrogates)? */
bool span_is_utf8(struct span span);
/* Bytes of the well-formed UTF-8 character that span begins with; 0: there is none. */
size_t span_utf8_size(struct span span);
/* Of what begins with no character: the bytes that one U+FFFD stands for, as in browsers (Unicode
 * 15, 3.9: maximal subparts). */
size_t span_broken_utf8_size(struct span span);
/* The first code point of a text that is not empty, taken off it; U+FFFD for what is no UTF-8. */
uint32_t span_take_code_point(struct span *span);
/* At most max_bytes of it: of UTF-8, no part of a character. */
struct span span_cut_utf8(struct span span, size_t max_bytes);
/* Itself where it is UTF-8, else a copy in the arena: without the start of a character at its end,
 * as names have that were cut, and with '?' for each other byte that is of none. */
struct span span_make_utf8(struct span span, struct arena *arena);

struct buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    size_t max_size;
    bool has_failed;
};

/* Starts empty and allocates nothing; buf_fini is safe at any time and may be repeated. */
void buf_init(struct buf *buf, size_t max_size);
void buf_fini(struct buf *buf);
/* Forgets the content and the failure, keeps the memory. */
void buf_clear(struct buf *buf);
/* True when an append did not fit below max_size since buf_init or buf_clear. */
bool buf_failed(const struct buf *buf);
struct span buf_span(const struct buf *buf);

void buf_append(struct buf *buf, const void *data, size_t size);
void buf_append_span(struct buf *buf, struct span span);
void buf_append_text(struct buf *buf, const char *text);
void buf_append_byte(struct buf *buf, uint8_t byte);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Text as a JSON string with quotes; bytes that are no UTF-8 become U+FFFD, and control characters,
 * those from U+0080 to U+009F too, are escaped: no terminal ever meets them. */
void buf_append_json(struct buf *buf, struct span text);
/* Text for HTML and XML content and double-quoted attributes. Control characters are dropped; what
 * turns the direction of the text behind it (U+202A to U+202E, U+2066 to U+2069) is written as
 * "\u202E": a name cannot be made to look like another. */
void buf_append_html(struct buf *buf, struct span text);
/* Percent-encoded for a query value or path segment. */
void buf_append_url(struct buf *buf, struct span text);
/*
 * Room for size more bytes, to be filled by the caller and added with buf_commit; NULL when it
 * would pass the maximum. For readers and compressors that write in place.
 */
uint8_t *buf_reserve(struct buf *buf, size_t size);
void buf_commit(struct buf *buf, size_t size);

/* Little-endian integers, as in our own formats. */
void buf_append_u16(struct buf *buf, uint16_t number);
void buf_append_u32(struct buf *buf, uint32_t number);
void buf_append_u64(struct buf *buf, uint64_t number);
void buf_append_f64(struct buf *buf, double number);

static inline void buf_cleanup(struct buf *buf)
{
    buf_fini(buf);
}
/* buf_auto body; buf_init(&body, MAX);  No return may precede buf_init; if one does: body = {0}. */
#define buf_auto __attribute__((cleanup(buf_cleanup))) struct buf

#endif

/*
 * buf: byte strings. A span borrows bytes; a buf owns bytes and grows up to a fixed maximum.
 *
 * A span is not NUL-terminated and is valid as long as the owner of its bytes. A buf that would
 * exceed its maximum keeps its content and sets a flag, so that a series of appends needs one check
 * at its end (buf_failed). Threads: an object belongs to one thread.
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
/* Compares bytes as unsigned numbers; a prefix sorts before the longer span. Returns <0, 0 or
 * >0. */
int span_compare(struct span a, struct span b);
/* The span without ASCII white space at both ends. */
struct span span_trim(struct span span);
/* Removes the first line from *rest and returns it without "\n" or "\r\n". Returns false when
 * *rest is empty. */
bool span_take_line(struct span *rest, struct span *ret_line);
/* Splits at the first separator. Without a separator it returns false, *ret_before is the whole
 * span and *ret_after is empty. */
bool span_split(struct span span, char separator, struct span *ret_before, struct span *ret_after);
/* Parse a whole span as a decimal number. They return false when the span is empty, contains
 * another character, or the number overflows. */
bool span_parse_u64(struct span span, uint64_t *ret_number);
bool span_parse_i64(struct span span, int64_t *ret_number);
/* The same for hexadecimal digits, with or without "0x". */
bool span_parse_hex(struct span span, uint64_t *ret_number);
/* Whether the span is well-formed UTF-8 (no overlong forms, no surrogates). */
bool span_is_utf8(struct span span);
/* Size of the well-formed UTF-8 character at the start of the span, in bytes; 0 when there is
 * none. */
size_t span_utf8_size(struct span span);
/* For a span that does not start with a well-formed character: the number of bytes that one
 * U+FFFD replaces, as in browsers (Unicode 15, 3.9: maximal subparts). */
size_t span_broken_utf8_size(struct span span);
/* Removes the first code point from a non-empty span and returns it; U+FFFD for bytes that are
 * not UTF-8. */
uint32_t span_take_code_point(struct span *span);
/* The first max_bytes bytes, shortened so that no UTF-8 character is cut. */
struct span span_cut_utf8(struct span span, size_t max_bytes);
/* Returns the span itself when it is UTF-8. Otherwise returns a copy in the arena, without an
 * incomplete character at its end (names are often cut to a fixed size) and with '?' for each
 * other invalid byte. */
struct span span_make_utf8(struct span span, struct arena *arena);

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

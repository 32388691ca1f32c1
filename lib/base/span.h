/*
 * span: borrowed bytes, compared, split and parsed. lib/base/span_utf8.h has the functions for
 * UTF-8, lib/base/buf.h the bytes that grow.
 *
 * A span is not NUL-terminated and is valid as long as the owner of its bytes. Threads: any; there
 * is no state.
 */
#ifndef LIB_BASE_SPAN_H
#define LIB_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif

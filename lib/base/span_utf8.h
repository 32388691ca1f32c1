/*
 * span_utf8: the characters of a span of UTF-8, and what replaces bytes that are not UTF-8.
 */
#ifndef LIB_BASE_SPAN_UTF8_H
#define LIB_BASE_SPAN_UTF8_H

#include "lib/base/span.h"

struct arena;

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

#endif

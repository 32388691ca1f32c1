/*
 * base64: decodes Base64 (RFC 4648), in the standard and the URL alphabet, with or without padding.
 *
 * Threads: any.
 */
#ifndef LIB_BASE_BASE64_H
#define LIB_BASE_BASE64_H

#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* Size of the buffer that text of that many characters needs, in bytes. */
static inline size_t base64_max_bytes(size_t text_size)
{
    return text_size / 4 * 3 + 3;
}

/* Decodes text into ret_bytes, which holds at least base64_max_bytes(text.size) bytes. Returns
 * false when text is not valid Base64. */
bool base64_decode(struct span text, uint8_t *ret_bytes, size_t *ret_size);

#endif

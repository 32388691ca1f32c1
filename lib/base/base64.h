/*
 * base64: text to bytes (RFC 4648), in both alphabets, with or without padding at the end.
 *
 * Threads: any.
 */
#ifndef LIB_BASE_BASE64_H
#define LIB_BASE_BASE64_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Room for what text of that many characters may stand for. */
static inline size_t base64_room(size_t text_size)
{
    return text_size / 4 * 3 + 3;
}

/* ret_bytes has base64_room(text.size) bytes. False when text is no base64. */
bool base64_decode(struct span text, uint8_t *ret_bytes, size_t *ret_size);

#endif

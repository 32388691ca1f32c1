#include "lib/base/span_utf8.h"

#include "lib/base/arena.h"

enum { UTF8_MAX_BYTES = 4 };

/* Length of a multi-byte character according to its first byte. */
static size_t utf8_length(uint8_t first)
{
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/* The number of bytes at data that are a prefix of one well-formed UTF-8 sequence (Unicode 15,
 * table 3-7), or the whole sequence; 0 when the first byte starts none. */
static size_t utf8_begun(const uint8_t *data, size_t size)
{
    const uint8_t first = data[0];
    const size_t length = first < 0x80 ? 1 : utf8_length(first);
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4)
        return 0;
    uint8_t low = 0x80, high = 0xbf;
    if (first == 0xe0)
        low = 0xa0;
    else if (first == 0xed)
        high = 0x9f;
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f;
    size_t begun = 1;
    for (; begun < length && begun < size && data[begun] >= low && data[begun] <= high; begun++) {
        low = 0x80;
        high = 0xbf;
    }
    return begun;
}

/* Size of the well-formed sequence at data, 0 when there is none. */
static size_t utf8_sequence(const uint8_t *data, size_t size)
{
    if (data[0] < 0x80)
        return 1;
    const size_t begun = utf8_begun(data, size);
    return begun == utf8_length(data[0]) ? begun : 0;
}

size_t span_broken_utf8_size(struct span span)
{
    const size_t begun = utf8_begun(span.data, span.size);
    return begun ? begun : 1;
}

size_t span_utf8_size(struct span span)
{
    return span.size ? utf8_sequence(span.data, span.size) : 0;
}

uint32_t span_take_code_point(struct span *span)
{
    const uint8_t *data = span->data;
    const size_t size = span_utf8_size(*span), used = size ? size : span_broken_utf8_size(*span);
    uint32_t code_point = size == 1 ? data[0] : size ? data[0] & (0x7fu >> size) : 0xfffd;
    for (size_t i = 1; i < size; i++)
        code_point = code_point << 6 | (data[i] & 0x3fu);
    *span = span_of(data + used, span->size - used);
    return code_point;
}

bool span_is_utf8(struct span span)
{
    for (size_t at = 0; at < span.size;) {
        size_t length = utf8_sequence(span.data + at, span.size - at);
        if (!length)
            return false;
        at += length;
    }
    return true;
}

struct span span_cut_utf8(struct span span, size_t max_bytes)
{
    size_t size = span.size < max_bytes ? span.size : max_bytes;
    /* Bytes that are not UTF-8 may all look like continuation bytes: drop at most one
     * character's worth. */
    const size_t least = size > UTF8_MAX_BYTES ? size - UTF8_MAX_BYTES : 0;
    while (size < span.size && size > least && (span.data[size] & 0xc0) == 0x80)
        size--;
    return span_of(span.data, size);
}

/* Whether the whole span is an incomplete UTF-8 character. */
static bool is_start_of_utf8(struct span span)
{
    const uint8_t first = span.data[0];
    if (first < 0xc2 || first > 0xf4 || span.size >= utf8_length(first))
        return false;
    for (size_t i = 1; i < span.size; i++) {
        if ((span.data[i] & 0xc0) != 0x80)
            return false;
    }
    return true;
}

struct span span_make_utf8(struct span span, struct arena *arena)
{
    if (span_is_utf8(span))
        return span;
    uint8_t *copy = arena_new_raw(arena, uint8_t, span.size);
    size_t size = 0, length;
    for (size_t at = 0; at < span.size; at += length ? length : 1) {
        const struct span rest = span_of(span.data + at, span.size - at);
        length = utf8_sequence(rest.data, rest.size);
        if (!length && is_start_of_utf8(rest))
            break;
        memcpy(copy + size, length ? rest.data : (const uint8_t *)"?", length ? length : 1);
        size += length ? length : 1;
    }
    return span_of(copy, size);
}

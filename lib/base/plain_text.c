#include "lib/base/plain_text.h"

static bool is_plain(uint32_t point)
{
    return !(point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x061c ||
             point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
             (point >= 0x2066 && point <= 0x206f) || (point >= 0xe0000 && point <= 0xe007f));
}

static size_t sequence_bytes(struct span text)
{
    for (size_t size = 1; size <= 4 && size <= text.size; size++) {
        if (span_is_utf8(span_of(text.data, size)))
            return size;
    }
    return 0;
}

size_t plain_text_next(struct span text, uint32_t *ret_point, bool *ret_is_plain)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const size_t size = sequence_bytes(text);
    if (size == 0) {
        *ret_point = text.data[0];
        *ret_is_plain = false;
        return 1;
    }
    uint32_t point = text.data[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        point = point << 6 | (text.data[i] & 0x3f);
    *ret_point = point;
    *ret_is_plain = is_plain(point);
    return size;
}

void plain_text_append(struct buf *text, struct span from)
{
    while (from.size) {
        uint32_t point;
        bool may_be_shown;
        const size_t size = plain_text_next(from, &point, &may_be_shown);
        if (may_be_shown)
            buf_append(text, from.data, size);
        else
            buf_append_byte(text, PLAIN_TEXT_SUBSTITUTE);
        from = span_of(from.data + size, from.size - size);
    }
}

size_t plain_text_clean(char *text, size_t size)
{
    size_t kept = 0;
    for (size_t at = 0, step; at < size; at += step) {
        uint32_t point;
        bool may_be_shown;
        step = plain_text_next(span_of(text + at, size - at), &point, &may_be_shown);
        if (may_be_shown) {
            memmove(text + kept, text + at, step);
            kept += step;
        } else {
            text[kept++] = PLAIN_TEXT_SUBSTITUTE;
        }
    }
    return kept;
}

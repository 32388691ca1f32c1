#include "lib/base/plain_text.h"

#include "lib/base/buf.h"
#include "lib/base/span_utf8.h"

enum { JOINER_FIRST = 0x200c, JOINER_LAST = 0x200d };

/* Sorted. The ignorable characters come from DerivedCoreProperties.txt of Unicode 15.1, except
 * the variation selectors U+180B to U+180D, U+180F and U+FE00 to U+FE0F. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180e, 0x180e},   {0x200b, 0x200b},   {0x200e, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_hidden(uint32_t point)
{
    size_t low = 0, high = sizeof(hidden) / sizeof(hidden[0]);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (point > hidden[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof(hidden) / sizeof(hidden[0]) && point >= hidden[low].first;
}

static bool is_plain(uint32_t point, struct span behind)
{
    if (point >= 0x20 && point < 0x7f)
        return true;
    if (point >= JOINER_FIRST && point <= JOINER_LAST)
        return behind.size && behind.data[0] >= 0x80;
    return !is_hidden(point);
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
    *ret_is_plain = is_plain(point, span_of(text.data + size, text.size - size));
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

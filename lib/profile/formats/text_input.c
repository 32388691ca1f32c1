#include "lib/profile/formats/text_input.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SNIFF_BYTES = 4096, REPLACEMENT = 0xfffd };

static void append_utf8(struct buf *buf, uint32_t code_point)
{
    if (code_point < 0x80) {
        buf_append_byte(buf, (uint8_t)code_point);
    } else if (code_point < 0x800) {
        buf_append_byte(buf, (uint8_t)(0xc0 | code_point >> 6));
        buf_append_byte(buf, (uint8_t)(0x80 | (code_point & 0x3f)));
    } else {
        if (code_point < 0x10000) {
            buf_append_byte(buf, (uint8_t)(0xe0 | code_point >> 12));
        } else {
            buf_append_byte(buf, (uint8_t)(0xf0 | code_point >> 18));
            buf_append_byte(buf, (uint8_t)(0x80 | (code_point >> 12 & 0x3f)));
        }
        buf_append_byte(buf, (uint8_t)(0x80 | (code_point >> 6 & 0x3f)));
        buf_append_byte(buf, (uint8_t)(0x80 | (code_point & 0x3f)));
    }
}

static uint32_t utf16_unit(const uint8_t *data, bool is_big_endian)
{
    return is_big_endian ? (uint32_t)data[0] << 8 | data[1] : (uint32_t)data[1] << 8 | data[0];
}

/* Unpaired surrogates become U+FFFD, as in browsers. */
static void convert_utf16(struct span bytes, bool is_big_endian, struct buf *storage)
{
    for (size_t at = 0; at < bytes.size; at += 2) {
        uint32_t unit = utf16_unit(bytes.data + at, is_big_endian);
        if ((unit & 0xf800) == 0xd800) {
            uint32_t next =
                at + 2 < bytes.size ? utf16_unit(bytes.data + at + 2, is_big_endian) : 0;
            bool is_pair = unit < 0xdc00 && (next & 0xfc00) == 0xdc00;
            unit = is_pair ? 0x10000 + ((unit & 0x3ff) << 10 | (next & 0x3ff)) : REPLACEMENT;
            at += is_pair ? 2 : 0;
        }
        append_utf8(storage, unit);
    }
}

enum err_code text_input_read(struct span bytes, struct buf *storage, struct span *ret_text,
                              struct err *err)
{
    bool is_little = span_starts_with(bytes, "\xff\xfe");
    bool is_big = span_starts_with(bytes, "\xfe\xff");
    if (span_starts_with(bytes, "\xef\xbb\xbf")) {
        *ret_text = span_of(bytes.data + 3, bytes.size - 3);
        return ERR_NONE;
    }
    if (!is_little && !is_big) {
        *ret_text = bytes;
        return ERR_NONE;
    }
    if (bytes.size % 2)
        return err_set(err, ERR_INVALID, "UTF-16 text ends in the middle of a character");
    convert_utf16(span_of(bytes.data + 2, bytes.size - 2), is_big, storage);
    if (buf_failed(storage))
        return err_set(err, ERR_TOO_LARGE, "text is larger than the limit of %zu bytes",
                       storage->max_size);
    *ret_text = buf_span(storage);
    return ERR_NONE;
}

bool text_input_is_binary(struct span bytes)
{
    size_t size = bytes.size < SNIFF_BYTES ? bytes.size : SNIFF_BYTES;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = bytes.data[i];
        if (byte < 0x20 && !(byte >= '\t' && byte <= '\r') && byte != 0x1b)
            return true;
    }
    return false;
}

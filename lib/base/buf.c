#include "lib/base/buf.h"

#include "lib/base/mem.h"
#include "lib/base/span_utf8.h"

#include <stdarg.h>
#include <stdio.h>

void buf_init(struct buf *buf, size_t max_size)
{
    *buf = (struct buf){.max_size = max_size};
}

void buf_fini(struct buf *buf)
{
    mem_free_buffer(buf->data, buf->capacity);
    *buf = (struct buf){.max_size = buf->max_size};
}

void buf_clear(struct buf *buf)
{
    buf->size = 0;
    buf->has_failed = false;
}

bool buf_failed(const struct buf *buf)
{
    return buf->has_failed;
}

struct span buf_span(const struct buf *buf)
{
    return span_of(buf->data, buf->size);
}

uint8_t *buf_reserve(struct buf *buf, size_t size)
{
    if (buf->has_failed || size > buf->max_size - buf->size) {
        buf->has_failed = true;
        return NULL;
    }
    size_t needed = buf->size + size;
    if (needed > buf->capacity || !buf->data) {
        size_t capacity = buf->capacity < 64 ? 64 : buf->capacity + buf->capacity / 2;
        if (capacity < needed)
            capacity = needed;
        if (capacity > buf->max_size)
            capacity = buf->max_size;
        buf->data = mem_grow_buffer(buf->data, buf->size, &buf->capacity, capacity);
        /* Callers that fill the capacity directly stay within the limit. */
        if (buf->capacity > buf->max_size)
            buf->capacity = buf->max_size;
    }
    return buf->data + buf->size;
}

void buf_commit(struct buf *buf, size_t size)
{
    buf->size += size;
}

void buf_append(struct buf *buf, const void *data, size_t size)
{
    if (size == 0)
        return;
    uint8_t *space = buf_reserve(buf, size);
    if (!space)
        return;
    memcpy(space, data, size);
    buf->size += size;
}

void buf_append_span(struct buf *buf, struct span span)
{
    buf_append(buf, span.data, span.size);
}

void buf_append_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_append_byte(struct buf *buf, uint8_t byte)
{
    buf_append(buf, &byte, 1);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    char small[256];
    va_list arguments, again;
    if (buf->has_failed)
        return;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(small, sizeof(small), format, arguments);
    va_end(arguments);
    if (size >= 0 && (size_t)size < sizeof(small)) {
        buf_append(buf, small, (size_t)size);
    } else if (size > 0) {
        char *large = mem_alloc((size_t)size + 1, 1);
        vsnprintf(large, (size_t)size + 1, format, again);
        buf_append(buf, large, (size_t)size);
        mem_free(large);
    }
    va_end(again);
}

static void append_json_ascii(struct buf *buf, uint8_t byte)
{
    switch (byte) {
    case '"':
        buf_append_text(buf, "\\\"");
        return;
    case '\\':
        buf_append_text(buf, "\\\\");
        return;
    case '\n':
        buf_append_text(buf, "\\n");
        return;
    case '\t':
        buf_append_text(buf, "\\t");
        return;
    default:
        buf_printf(buf, "\\u%04x", byte);
    }
}

static bool is_plain_json(uint8_t byte)
{
    /* JSON allows 0x7f, but it is escaped to keep the output safe on a terminal. */
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

void buf_append_json(struct buf *buf, struct span text)
{
    buf_append_byte(buf, '"');
    for (size_t at = 0; at < text.size && !buf->has_failed;) {
        size_t plain = at;
        while (plain < text.size && is_plain_json(text.data[plain]))
            plain++;
        buf_append(buf, text.data + at, plain - at);
        at = plain;
        if (at == text.size)
            break;
        if (text.data[at] < 0x80) {
            append_json_ascii(buf, text.data[at++]);
            continue;
        }
        size_t length = span_utf8_size(span_of(text.data + at, text.size - at));
        if (length == 2 && text.data[at] == 0xc2 && text.data[at + 1] < 0xa0) /* C1, as 0x7f */
            buf_printf(buf, "\\u00%02x", text.data[at + 1]);
        else if (length)
            buf_append(buf, text.data + at, length);
        else
            buf_append_text(buf, "\xef\xbf\xbd");
        at += length ? length : span_broken_utf8_size(span_of(text.data + at, text.size - at));
    }
    buf_append_byte(buf, '"');
}

/* Appends one character that is not ASCII. length is the size of its UTF-8; 0 marks an invalid
 * byte. */
static void append_html_sequence(struct buf *buf, const uint8_t *bytes, size_t length)
{
    const uint32_t three =
        length == 3 ? (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2] : 0;
    if (!length)
        buf_append_text(buf, "\xef\xbf\xbd");
    else if (three >= 0xe280aa && three <= 0xe280ae)
        buf_printf(buf, "\\u20%02X", three - 0xe280aa + 0x2a);
    else if (three >= 0xe281a6 && three <= 0xe281a9)
        buf_printf(buf, "\\u20%02X", three - 0xe281a6 + 0x66);
    else if (length != 2 || bytes[0] != 0xc2 || bytes[1] >= 0xa0) /* C1 */
        buf_append(buf, bytes, length);
}

void buf_append_html(struct buf *buf, struct span text)
{
    for (size_t at = 0; at < text.size && !buf->has_failed;) {
        uint8_t byte = text.data[at];
        if (byte >= 0x80) {
            size_t length = span_utf8_size(span_of(text.data + at, text.size - at));
            append_html_sequence(buf, text.data + at, length);
            at += length ? length : span_broken_utf8_size(span_of(text.data + at, text.size - at));
            continue;
        }
        at++;
        if (byte == '&')
            buf_append_text(buf, "&amp;");
        else if (byte == '<')
            buf_append_text(buf, "&lt;");
        else if (byte == '>')
            buf_append_text(buf, "&gt;");
        else if (byte == '"')
            buf_append_text(buf, "&quot;");
        else if (byte == '\'')
            buf_append_text(buf, "&#39;");
        else if ((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t')
            buf_append_byte(buf, byte);
    }
}

void buf_append_url(struct buf *buf, struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        bool is_unreserved = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                             (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' ||
                             byte == '_' || byte == '~';
        if (is_unreserved)
            buf_append_byte(buf, byte);
        else
            buf_printf(buf, "%%%02X", byte);
    }
}

void buf_append_u16(struct buf *buf, uint16_t number)
{
    uint8_t bytes[2] = {(uint8_t)number, (uint8_t)(number >> 8)};
    buf_append(buf, bytes, sizeof(bytes));
}

void buf_append_u32(struct buf *buf, uint32_t number)
{
    uint8_t bytes[4];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    buf_append(buf, bytes, sizeof(bytes));
}

void buf_append_u64(struct buf *buf, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    buf_append(buf, bytes, sizeof(bytes));
}

void buf_append_f64(struct buf *buf, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    buf_append_u64(buf, bits);
}

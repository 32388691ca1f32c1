#include "lib/base/buf.h"

#include "lib/base/arena.h"
#include "lib/base/mem.h"

#include <stdarg.h>
#include <stdio.h>

enum { UTF8_MAX_BYTES = 4 };

bool span_equal(struct span a, struct span b)
{
    return a.size == b.size &&
           (a.size == 0 || a.data == b.data || memcmp(a.data, b.data, a.size) == 0);
}

bool span_equal_text(struct span a, const char *text)
{
    return span_equal(a, span_text(text));
}

bool span_starts_with(struct span span, const char *prefix)
{
    size_t size = strlen(prefix);
    return span.size >= size && (size == 0 || memcmp(span.data, prefix, size) == 0);
}

bool span_ends_with(struct span span, const char *suffix)
{
    size_t size = strlen(suffix);
    return span.size >= size &&
           (size == 0 || memcmp(span.data + span.size - size, suffix, size) == 0);
}

int span_compare(struct span a, struct span b)
{
    size_t shared = a.size < b.size ? a.size : b.size;
    /* Spans often share one long string: memcmp would compare all its bytes with themselves. */
    int order = shared && a.data != b.data ? memcmp(a.data, b.data, shared) : 0;
    if (order)
        return order;
    return (a.size > b.size) - (a.size < b.size);
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

struct span span_trim(struct span span)
{
    while (span.size && is_space(span.data[0])) {
        span.data++;
        span.size--;
    }
    while (span.size && is_space(span.data[span.size - 1]))
        span.size--;
    return span;
}

bool span_take_line(struct span *rest, struct span *ret_line)
{
    if (rest->size == 0)
        return false;
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    *ret_line = span_of(rest->data, size);
    if (ret_line->size && ret_line->data[ret_line->size - 1] == '\r')
        ret_line->size--;
    size_t consumed = end ? size + 1 : size;
    rest->data += consumed;
    rest->size -= consumed;
    return true;
}

bool span_split(struct span span, char separator, struct span *ret_before, struct span *ret_after)
{
    const uint8_t *at = span.size ? memchr(span.data, separator, span.size) : NULL;
    if (!at) {
        *ret_before = span;
        *ret_after = span_of(NULL, 0);
        return false;
    }
    size_t before = (size_t)(at - span.data);
    *ret_before = span_of(span.data, before);
    *ret_after = span_of(at + 1, span.size - before - 1);
    return true;
}

bool span_parse_u64(struct span span, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (span.size == 0)
        return false;
    for (size_t i = 0; i < span.size; i++) {
        unsigned digit = (unsigned)span.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return false;
    }
    *ret_number = number;
    return true;
}

bool span_parse_i64(struct span span, int64_t *ret_number)
{
    bool is_negative = span.size && span.data[0] == '-';
    uint64_t magnitude;
    if (is_negative)
        span = span_of(span.data + 1, span.size - 1);
    if (!span_parse_u64(span, &magnitude))
        return false;
    uint64_t limit = (uint64_t)INT64_MAX + (is_negative ? 1 : 0);
    if (magnitude > limit)
        return false;
    *ret_number = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool span_parse_hex(struct span span, uint64_t *ret_number)
{
    if (span_starts_with(span, "0x") || span_starts_with(span, "0X"))
        span = span_of(span.data + 2, span.size - 2);
    uint64_t number = 0;
    if (span.size == 0 || span.size > 16)
        return false;
    for (size_t i = 0; i < span.size; i++) {
        int digit = hex_digit(span.data[i]);
        if (digit < 0)
            return false;
        number = number << 4 | (uint64_t)digit;
    }
    *ret_number = number;
    return true;
}

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
        size_t length = utf8_sequence(text.data + at, text.size - at);
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
            size_t length = utf8_sequence(text.data + at, text.size - at);
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

#include "lib/base/span.h"

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

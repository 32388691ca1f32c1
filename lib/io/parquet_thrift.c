#include "lib/io/parquet_thrift.h"

#include "lib/base/buf.h"

#include <assert.h>

enum { KIND_TRUE = 1, KIND_FALSE = 2, KIND_I8 = 3, KIND_I64 = 6, KIND_LIST = 9 };

void thrift_append_varint(struct buf *bytes, uint64_t number)
{
    while (number >= 0x80) {
        buf_append_byte(bytes, (uint8_t)(number | 0x80));
        number >>= 7;
    }
    buf_append_byte(bytes, (uint8_t)number);
}

static void append_zigzag(struct thrift *thrift, int64_t number)
{
    thrift_append_varint(thrift->bytes, ((uint64_t)number << 1) ^ (uint64_t)(number >> 63));
}

static void begin_field(struct thrift *thrift, int16_t field, int kind)
{
    int16_t *last = &thrift->last[thrift->depth];
    const int step = field - *last;
    if (step > 0 && step <= 15) {
        buf_append_byte(thrift->bytes, (uint8_t)(step << 4 | kind));
    } else {
        buf_append_byte(thrift->bytes, (uint8_t)kind);
        append_zigzag(thrift, field);
    }
    *last = field;
}

void thrift_init(struct thrift *thrift, struct buf *bytes)
{
    *thrift = (struct thrift){.bytes = bytes};
}

void thrift_bool(struct thrift *thrift, int16_t field, bool value)
{
    begin_field(thrift, field, value ? KIND_TRUE : KIND_FALSE);
}

void thrift_i8(struct thrift *thrift, int16_t field, int8_t value)
{
    begin_field(thrift, field, KIND_I8);
    buf_append_byte(thrift->bytes, (uint8_t)value);
}

void thrift_i32(struct thrift *thrift, int16_t field, int32_t value)
{
    begin_field(thrift, field, THRIFT_I32);
    append_zigzag(thrift, value);
}

void thrift_i64(struct thrift *thrift, int16_t field, int64_t value)
{
    begin_field(thrift, field, KIND_I64);
    append_zigzag(thrift, value);
}

void thrift_list_text(struct thrift *thrift, struct span text)
{
    thrift_append_varint(thrift->bytes, text.size);
    buf_append_span(thrift->bytes, text);
}

void thrift_text(struct thrift *thrift, int16_t field, struct span text)
{
    begin_field(thrift, field, THRIFT_TEXT);
    thrift_list_text(thrift, text);
}

void thrift_element(struct thrift *thrift)
{
    assert(thrift->depth + 1 < THRIFT_DEPTH_MAX);
    thrift->last[++thrift->depth] = 0;
}

void thrift_begin(struct thrift *thrift, int16_t field)
{
    begin_field(thrift, field, THRIFT_STRUCT);
    thrift_element(thrift);
}

void thrift_end(struct thrift *thrift)
{
    buf_append_byte(thrift->bytes, 0);
    if (thrift->depth)
        thrift->depth--;
}

void thrift_list(struct thrift *thrift, int16_t field, enum thrift_kind kind, uint32_t count)
{
    begin_field(thrift, field, KIND_LIST);
    if (count < 15) {
        buf_append_byte(thrift->bytes, (uint8_t)(count << 4 | kind));
        return;
    }
    buf_append_byte(thrift->bytes, (uint8_t)(0xf0 | kind));
    thrift_append_varint(thrift->bytes, count);
}

void thrift_list_i32(struct thrift *thrift, int32_t value)
{
    append_zigzag(thrift, value);
}

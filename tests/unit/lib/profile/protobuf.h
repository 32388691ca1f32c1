/*
 * protobuf: writes single protobuf fields, so that tests can build any pprof message, including
 * invalid ones.
 */
#ifndef TESTS_UNIT_LIB_PROFILE_PROTOBUF_H
#define TESTS_UNIT_LIB_PROFILE_PROTOBUF_H

#include "lib/base/buf.h"

static inline void protobuf_varint(struct buf *buf, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(buf, (uint8_t)(number | 0x80));
    buf_append_byte(buf, (uint8_t)number);
}

static inline void protobuf_number(struct buf *buf, uint32_t field, int64_t number)
{
    protobuf_varint(buf, (uint64_t)field << 3);
    protobuf_varint(buf, (uint64_t)number);
}

static inline void protobuf_bytes(struct buf *buf, uint32_t field, const void *data, size_t size)
{
    protobuf_varint(buf, (uint64_t)field << 3 | 2);
    protobuf_varint(buf, size);
    buf_append(buf, data, size);
}

static inline void protobuf_text(struct buf *buf, uint32_t field, const char *text)
{
    protobuf_bytes(buf, field, text, strlen(text));
}

/* A message of numeric fields: pairs of field and number, terminated by field 0. */
static inline void protobuf_message(struct buf *buf, uint32_t field, const int64_t *pairs)
{
    buf_auto message;
    buf_init(&message, 1 << 16);
    for (; pairs[0]; pairs += 2)
        protobuf_number(&message, (uint32_t)pairs[0], pairs[1]);
    protobuf_bytes(buf, field, message.data, message.size);
}
#define WIRE(buf, field, ...) protobuf_message((buf), (field), (const int64_t[]){__VA_ARGS__, 0})

#endif

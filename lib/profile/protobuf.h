/*
 * protobuf: the wire format of protocol buffers (protobuf.dev/programming-guides/encoding), as far
 * as pprof and OTLP need it. Inline, because decoders spend most of their time here. Readers read
 * from `at`, never beyond `end`, and return the position after the data, or NULL if the data is
 * truncated or malformed. Groups (wire types 3 and 4) count as malformed.
 */
#ifndef LIB_PROFILE_PROTOBUF_H
#define LIB_PROFILE_PROTOBUF_H

#include "lib/base/span.h"

#include <assert.h>

/* Several bytes are loaded as one number. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire's numbers are little-endian");

enum protobuf_type {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5
};

enum { PROTOBUF_VARINT_BYTES_MAX = 10 };

struct protobuf_field {
    uint64_t number;   /* of a varint or fixed field; else 0 */
    struct span bytes; /* of a length-delimited field; else empty */
    uint32_t id;       /* field number; 0, which is invalid, is not refused */
    enum protobuf_type type;
};

/* Reads a varint of any size; protobuf_read_varint calls it for three bytes and more. */
const uint8_t *protobuf_read_long_varint(const uint8_t *at, const uint8_t *end,
                                         uint64_t *ret_number);

/* Without always_inline gcc calls these functions in the hot loops instead of inlining them. */
#define PROTOBUF_INLINE static inline __attribute__((always_inline))

PROTOBUF_INLINE const uint8_t *protobuf_read_varint(const uint8_t *at, const uint8_t *end,
                                                    uint64_t *ret_number)
{
    if (at < end && at[0] < 0x80) {
        *ret_number = at[0];
        return at + 1;
    }
    if (end - at >= 2 && at[1] < 0x80) {
        *ret_number = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
        return at + 2;
    }
    return protobuf_read_long_varint(at, end, ret_number);
}

/* Reads the value of a field whose type is set; NULL also if the type is not fixed. */
const uint8_t *protobuf_read_fixed(const uint8_t *at, const uint8_t *end,
                                   struct protobuf_field *field);

PROTOBUF_INLINE const uint8_t *protobuf_read_field(const uint8_t *at, const uint8_t *end,
                                                   struct protobuf_field *field)
{
    uint64_t tag;
    at = protobuf_read_varint(at, end, &tag);
    if (!at || tag >> 3 > UINT32_MAX)
        return NULL;
    field->id = (uint32_t)(tag >> 3);
    field->type = (enum protobuf_type)(tag & 7);
    field->bytes = (struct span){0};
    field->number = 0;
    if (field->type == PROTOBUF_VARINT)
        return protobuf_read_varint(at, end, &field->number);
    if (field->type != PROTOBUF_BYTES)
        return protobuf_read_fixed(at, end, field);
    uint64_t size;
    at = protobuf_read_varint(at, end, &size);
    if (!at || size > (uint64_t)(end - at))
        return NULL;
    field->bytes = span_of(at, (size_t)size);
    return at + size;
}

/* Counts the varints in bytes: each ends with a byte whose high bit is clear. Eight bytes are
 * tested at a time. */
static inline uint64_t protobuf_count_varints(struct span bytes)
{
    uint64_t count = 0;
    size_t i = 0;
    for (; i + 8 <= bytes.size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes.data + i, 8);
        uint64_t ends = (~word >> 7) & UINT64_C(0x0101010101010101);
        count += (ends * UINT64_C(0x0101010101010101)) >> 56;
    }
    for (; i < bytes.size; i++)
        count += bytes.data[i] < 0x80;
    return count;
}

#endif

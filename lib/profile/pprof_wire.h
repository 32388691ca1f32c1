/*
 * pprof_wire: the protobuf wire format (protobuf.dev/programming-guides/encoding) as far as pprof
 * needs it, inline because decoding spends its time here. Private to the files lib/profile/pprof_*.
 * Readers return the position behind what they read, or NULL when it is malformed.
 */
#ifndef LIB_PROFILE_PPROF_WIRE_H
#define LIB_PROFILE_PPROF_WIRE_H

#include "lib/base/buf.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

enum { WIRE_VARINT_BYTES_MAX = 10 };

/* Numbers of the messages' fields in profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DROP_FRAMES = 7,
    PROFILE_KEEP_FRAMES = 8,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
    PROFILE_DOC_URL = 15,
    PROFILE_FIELD_COUNT = 16,

    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,

    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,

    LABEL_KEY = 1,
    LABEL_STR = 2,
    LABEL_NUM = 3,
    LABEL_NUM_UNIT = 4,

    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINE_NUMBERS = 9,
    MAPPING_HAS_INLINE_FRAMES = 10,

    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LOCATION_IS_FOLDED = 5,

    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    LINE_COLUMN = 3,

    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILENAME = 4,
    FUNCTION_START_LINE = 5
};

struct wire_field {
    uint64_t number; /* of a varint or fixed field */
    struct span bytes;
    uint32_t id;
    enum wire_type type;
};

const uint8_t *wire_read_long_varint(const uint8_t *at, const uint8_t *end, uint64_t *ret_number);

/* gcc would rather call these than have them in each of the loops that live from them. */
#define WIRE_INLINE static inline __attribute__((always_inline))

WIRE_INLINE const uint8_t *wire_read_varint(const uint8_t *at, const uint8_t *end,
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
    return wire_read_long_varint(at, end, ret_number);
}

const uint8_t *wire_read_fixed(const uint8_t *at, const uint8_t *end, struct wire_field *field);

WIRE_INLINE const uint8_t *wire_read_field(const uint8_t *at, const uint8_t *end,
                                           struct wire_field *field)
{
    uint64_t tag;
    at = wire_read_varint(at, end, &tag);
    if (!at || tag >> 3 > UINT32_MAX)
        return NULL;
    field->id = (uint32_t)(tag >> 3);
    field->type = (enum wire_type)(tag & 7);
    field->bytes = (struct span){0};
    field->number = 0;
    if (field->type == WIRE_VARINT)
        return wire_read_varint(at, end, &field->number);
    if (field->type != WIRE_BYTES)
        return wire_read_fixed(at, end, field);
    uint64_t size;
    at = wire_read_varint(at, end, &size);
    if (!at || size > (uint64_t)(end - at))
        return NULL;
    field->bytes = span_of(at, (size_t)size);
    return at + size;
}

/* How many varints end in bytes: a byte without the high bit ends one. */
static inline uint64_t wire_count_varints(struct span bytes)
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

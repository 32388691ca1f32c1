#include "lib/profile/wire.h"

const uint8_t *wire_read_long_varint(const uint8_t *at, const uint8_t *end, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < WIRE_VARINT_BYTES_MAX && at + i < end; i++) {
        number |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] < 0x80) {
            *ret_number = number;
            return at + i + 1;
        }
    }
    return NULL;
}

const uint8_t *wire_read_fixed(const uint8_t *at, const uint8_t *end, struct wire_field *field)
{
    size_t size = field->type == WIRE_FIXED64 ? 8 : 4;
    if ((field->type != WIRE_FIXED64 && field->type != WIRE_FIXED32) || (size_t)(end - at) < size)
        return NULL;
    field->number = 0;
    for (size_t i = 0; i < size; i++)
        field->number |= (uint64_t)at[i] << (8 * i);
    return at + size;
}

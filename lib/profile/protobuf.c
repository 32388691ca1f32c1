#include "lib/profile/protobuf.h"

/* Joins the low seven bits of eight bytes to one number of 56 bits, in three steps: pairs of bytes,
 * pairs of pairs, and both halves. */
static uint64_t join_sevens(uint64_t word)
{
    word &= UINT64_C(0x7f7f7f7f7f7f7f7f);
    word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (word & UINT64_C(0x0fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

const uint8_t *protobuf_read_long_varint(const uint8_t *at, const uint8_t *end,
                                         uint64_t *ret_number)
{
    uint64_t number = 0;
    if (end - at >= 8) {
        memcpy(&number, at, sizeof(number));
        const uint64_t ends = ~number & UINT64_C(0x8080808080808080);
        if (ends) {
            /* The lowest byte without its high bit ends the number. Keep the bytes up to it. */
            *ret_number = join_sevens(number & (ends ^ (ends - 1)));
            return at + __builtin_ctzll(ends) / 8 + 1;
        }
        number = 0;
    }
    for (unsigned i = 0; i < PROTOBUF_VARINT_BYTES_MAX && at + i < end; i++) {
        number |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] < 0x80) {
            *ret_number = number;
            return at + i + 1;
        }
    }
    return NULL;
}

const uint8_t *protobuf_read_fixed(const uint8_t *at, const uint8_t *end,
                                   struct protobuf_field *field)
{
    size_t size = field->type == PROTOBUF_FIXED64 ? 8 : 4;
    if ((field->type != PROTOBUF_FIXED64 && field->type != PROTOBUF_FIXED32) ||
        (size_t)(end - at) < size)
        return NULL;
    field->number = 0;
    for (size_t i = 0; i < size; i++)
        field->number |= (uint64_t)at[i] << (8 * i);
    return at + size;
}

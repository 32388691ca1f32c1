#include "lib/base/base64.h"

static int digit_of(uint8_t byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return byte - 'A';
    if (byte >= 'a' && byte <= 'z')
        return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9')
        return byte - '0' + 52;
    if (byte == '+' || byte == '-')
        return 62;
    return byte == '/' || byte == '_' ? 63 : -1;
}

bool base64_decode(struct span text, uint8_t *ret_bytes, size_t *ret_size)
{
    for (int i = 0; i < 2 && text.size && text.data[text.size - 1] == '='; i++)
        text.size--;
    if (text.size % 4 == 1)
        return false;
    size_t size = 0;
    uint32_t bits = 0, bit_count = 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = digit_of(text.data[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            ret_bytes[size++] = (uint8_t)(bits >> bit_count);
        }
    }
    *ret_size = size;
    return true;
}

#include "lib/base/radix_sort.h"

#include "lib/base/mem.h"

#include <stdbool.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, NUMBER_BITS = 64, PLACE_BITS = 32 };

/* One pass of a least-significant-digit radix sort: counts the digits, turns the counts into
 * start positions, and moves each number. Returns false without moving when all numbers have the
 * same digit. */
static bool order_by_digit(const uint64_t *from, uint64_t *to, uint32_t count, unsigned shift)
{
    uint32_t starts[DIGITS] = {0};
    for (uint32_t i = 0; i < count; i++)
        starts[from[i] >> shift & (DIGITS - 1)]++;
    if (starts[from[0] >> shift & (DIGITS - 1)] == count)
        return false;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < DIGITS; i++) {
        const uint32_t own = starts[i];
        starts[i] = sum;
        sum += own;
    }
    for (uint32_t i = 0; i < count; i++)
        to[starts[from[i] >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

void radix_sort_by_bits(uint64_t **numbers, uint32_t count, unsigned first_bit)
{
    if (count < 2)
        return;
    uint64_t *other = mem_resize(NULL, count, sizeof(*other));
    for (unsigned shift = first_bit; shift < NUMBER_BITS; shift += DIGIT_BITS) {
        if (!order_by_digit(*numbers, other, count, shift))
            continue;
        uint64_t *sorted = other;
        other = *numbers;
        *numbers = sorted;
    }
    mem_free(other);
}

/* Sorts (32 key bits, index) pairs packed into 64-bit numbers: first by the low half of the
 * keys, then, since the sort is stable, by the high half. A half in which all keys agree is
 * skipped. At the end the low 32 bits of the pairs are the order. */
void radix_sort_order(const uint64_t *keys, uint32_t count, uint32_t *ret_order)
{
    bool is_ascending = true;
    uint64_t differing = 0;
    for (uint32_t i = 0; i < count; i++) {
        is_ascending = is_ascending && (i == 0 || keys[i] >= keys[i - 1]);
        differing |= keys[i] ^ keys[0];
        ret_order[i] = i;
    }
    if (is_ascending)
        return;
    uint64_t *numbers = mem_resize(NULL, count, sizeof(*numbers));
    for (unsigned shift = 0; shift < NUMBER_BITS; shift += PLACE_BITS) {
        if (!(differing >> shift & UINT32_MAX))
            continue;
        for (uint32_t i = 0; i < count; i++)
            numbers[i] = keys[ret_order[i]] >> shift << PLACE_BITS | ret_order[i];
        radix_sort_by_bits(&numbers, count, PLACE_BITS);
        for (uint32_t i = 0; i < count; i++)
            ret_order[i] = (uint32_t)numbers[i];
    }
    mem_free(numbers);
}

/*
 * radix_sort: sorts 64-bit numbers by their digits instead of comparisons.
 *
 * 200,000 addresses take 10 ns each, where a comparison sort takes 100. Threads: any.
 */
#ifndef LIB_BASE_RADIX_SORT_H
#define LIB_BASE_RADIX_SORT_H

#include <stdint.h>

/*
 * Sorts numbers by their bits from first_bit upwards. The sort is stable. *numbers was allocated by
 * mem.h; the function may free that array and set *numbers to another one of the same size.
 */
void radix_sort_by_bits(uint64_t **numbers, uint32_t count, unsigned first_bit);

/* ret_order[i] is the index of the i-th smallest key; equal keys keep their order. Allocates 16
 * bytes per key temporarily. */
void radix_sort_order(const uint64_t *keys, uint32_t count, uint32_t *ret_order);

#endif

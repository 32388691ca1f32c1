/*
 * bitpack: columns of whole numbers in as few bits as most of them need.
 *
 * A column is split into runs of 256 numbers. Each run has the bit width that makes it smallest;
 * the high bits of the few wider numbers follow separately ("patched frame of reference", Zukowski
 * et al., ICDE 2006). A full run is stored in 8 lanes of 32 bits, number i in lane i % 8, so that
 * one AVX2 instruction unpacks 8 numbers; the rest of a column, fewer than 256 numbers, is stored
 * bit after bit. One run, little-endian:
 *
 *   offset  size  contents
 *   0       1     width of all numbers, 0 to 32 bits
 *   1       1     number of patches
 *   2       1     bytes of each patch, 0 to 4
 *   3       ..    full run: 8 * 4 * width bytes; rest: ceil(count * width / 8) bytes
 *   ..      1     per patch: position in the run
 *   ..      0..4  per patch: the bits above width
 *
 * The count is not stored; the reader knows it. A column of 64-bit numbers is two columns of 32
 * bits, low halves first.
 *
 * Example: 300 numbers, 299 of them below 8 and one of 1,000 at position 5. The first run has width
 * 3 (96 bytes), one patch of one byte (1,000 >> 3 = 125) at position 5, and takes 3 + 96 + 2 = 101
 * bytes instead of the 323 that width 10 would take. The rest has 44 numbers of 3 bits: 3 + 17
 * bytes.
 *
 * Unpacking checks every length and never reads beyond its input, whatever that contains. It uses
 * AVX2 where the processor has it, otherwise the same code compiled for the vectors of the baseline
 * processor. Threads: any; there is no state.
 */
#ifndef STORE_BLOCK_BITPACK_H
#define STORE_BLOCK_BITPACK_H

#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { BITPACK_RUN = 256, BITPACK_RUN_BYTES_MIN = 3 };

enum bitpack_effort {
    BITPACK_QUICK, /* each run is as wide as its widest number: a fifth of the time */
    BITPACK_SMALL
};

/* Append values, packed. */
void bitpack_append_u32(struct buf *output, const uint32_t *values, size_t count,
                        enum bitpack_effort effort);
void bitpack_append_u64(struct buf *output, const uint64_t *values, size_t count,
                        enum bitpack_effort effort);

/* Take a column of count numbers off *rest; false when it is malformed. */
bool bitpack_take_u32(struct span *rest, uint32_t *values, size_t count);
bool bitpack_take_u64(struct span *rest, uint64_t *values, size_t count);

/* Skips a column of count 32-bit numbers without unpacking it; false when it is malformed. After
 * true, bitpack_take_u32 of that column cannot fail. *ret_are_zeros: all numbers are 0. */
bool bitpack_skip_u32(struct span *rest, size_t count, bool *ret_are_zeros);

/* The same without AVX2, for tests and benchmarks. */
bool bitpack_take_u32_portable(struct span *rest, uint32_t *values, size_t count);
void bitpack_append_u32_portable(struct buf *output, const uint32_t *values, size_t count,
                                 enum bitpack_effort effort);

#endif

/*
 * pack: columns of whole numbers in as few bits as most of them need.
 *
 * Numbers are cut into runs of 256. Each run is stored with the width that makes it smallest; the
 * bits of the few numbers that are wider follow apart ("patched frame of reference", Zukowski et
 * al., ICDE 2006). A full run lies in 8 lanes of 32 bits, number i in lane i % 8, so that one AVX2
 * instruction unpacks 8 of them; the rest of a column, below 256 numbers, lies bit after bit. One
 * run, little-endian:
 *   0  1  width of all, 0 to 32 bits
 *   1  1  how many are patched
 *   2  1  bytes of each patch, 0 to 4
 *   3     full run: 8 * 4 * width bytes; rest: ceil(count * width / 8) bytes
 *         position of each patched number in the run, one byte each
 *         its bits above width, in the said number of bytes each
 * The count is not stored; who reads a column knows it. Numbers of 64 bits are two columns of 32,
 * low halves first.
 *
 * Unpacking checks every length and never reads beyond its input, whatever is in there. It uses
 * AVX2 where the processor has it, and the same code in lanes of what else there is elsewhere.
 * Threads: any; no state is kept.
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

/* Appends values, packed. */
void bitpack_append_u32(struct buf *output, const uint32_t *values, size_t count,
                        enum bitpack_effort effort);
void bitpack_append_u64(struct buf *output, const uint64_t *values, size_t count,
                        enum bitpack_effort effort);

/* Cuts a column of count numbers off *rest; false when it is malformed. */
bool bitpack_take_u32(struct span *rest, uint32_t *values, size_t count);
bool bitpack_take_u64(struct span *rest, uint64_t *values, size_t count);

/*
 * Steps over a column of count numbers of 32 bits without unpacking it; false when it is malformed.
 * After true, no bitpack_take_u32 of that column fails. *ret_are_zeros: all of them are 0.
 */
bool bitpack_skip_u32(struct span *rest, size_t count, bool *ret_are_zeros);

/* The twins without AVX2, for tests and benchmarks. */
bool bitpack_take_u32_portable(struct span *rest, uint32_t *values, size_t count);
void bitpack_append_u32_portable(struct buf *output, const uint32_t *values, size_t count,
                                 enum bitpack_effort effort);

#endif

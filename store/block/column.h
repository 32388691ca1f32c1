/* column: packed numbers (store/block/bitpack.h) preceded by their size, compressed with zstd where
 * that saves an eighth or more. store/block/block_format.h describes the bytes. Private to
 * store/block. */
#ifndef STORE_BLOCK_COLUMN_H
#define STORE_BLOCK_COLUMN_H

#include "lib/base/buf.h"
#include "store/block/bitpack.h"

#include <stdbool.h>
#include <stdint.h>

struct column_writer {
    struct buf packed;
    struct compress_zstd_writer *zstd; /* NULL: not needed */
    int level;                         /* of zstd; 0: no compression */
    enum bitpack_effort effort;
};

void column_writer_init(struct column_writer *writer, int level, enum bitpack_effort effort);
void column_writer_fini(struct column_writer *writer);

void column_append_u32(struct column_writer *writer, struct buf *output, const uint32_t *values,
                       size_t count);
void column_append_u64(struct column_writer *writer, struct buf *output, const uint64_t *values,
                       size_t count);
/* Appends bytes that are not packed. */
void column_append_bytes(struct column_writer *writer, struct buf *output, struct span bytes);

/* For a writer without zstd: reserves a column of `size` bytes, which the caller fills before the
 * next append. NULL when output has failed. */
uint8_t *column_reserve_bytes(struct column_writer *writer, struct buf *output, uint64_t size);

/* Buffer for decompressed bytes, reused from column to column. */
struct column_reader {
    struct buf flat;
};

void column_reader_init(struct column_reader *reader);
void column_reader_fini(struct column_reader *reader);

/* Take the next column, of count numbers, off *rest; false when it is malformed. */
bool column_take_u32(struct column_reader *reader, struct span *rest, uint32_t *values,
                     size_t count);
bool column_take_u64(struct column_reader *reader, struct span *rest, uint64_t *values,
                     size_t count);
/* Takes a column of bytes, borrowed from *rest or from the reader until its next column. */
bool column_take_bytes(struct column_reader *reader, struct span *rest, struct span *ret_bytes);
/* Reports whether the next column is large enough for count numbers. Called before memory for them
 * is allocated. */
bool column_can_hold(struct span rest, size_t count);

/* Maps signed numbers to unsigned ones that are small when they are near 0. */
static inline uint64_t column_zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
}
static inline int64_t column_unzigzag(uint64_t number)
{
    return (int64_t)(number >> 1 ^ (~(number & 1) + 1));
}

#endif

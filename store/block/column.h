/*
 * column: packed numbers (store/block/bitpack.h) with their size in front, compressed with zstd
 * where that saves an eighth and more. The bytes are described in store/block/block_format.h.
 * Private to the files store/block_*.
 */
#ifndef STORE_BLOCK_COLUMN_H
#define STORE_BLOCK_COLUMN_H

#include "lib/base/buf.h"
#include "store/block/bitpack.h"

#include <stdbool.h>
#include <stdint.h>

struct column_writer {
    struct buf packed;
    struct compress_zstd_writer *zstd; /* NULL: not needed */
    int level;                         /* of zstd; 0: none */
    enum bitpack_effort effort;
};

void column_writer_init(struct column_writer *writer, int level, enum bitpack_effort effort);
void column_writer_fini(struct column_writer *writer);

void column_append_u32(struct column_writer *writer, struct buf *output, const uint32_t *values,
                       size_t count);
void column_append_u64(struct column_writer *writer, struct buf *output, const uint64_t *values,
                       size_t count);
/* Bytes as they are. */
void column_append_bytes(struct column_writer *writer, struct buf *output, struct span bytes);

/* Of a writer without zstd: a column of so many bytes, which the caller fills before anything else
 * is appended; NULL when output has failed. */
uint8_t *column_reserve_bytes(struct column_writer *writer, struct buf *output, uint64_t size);

/* Room for what is expanded; kept from column to column. */
struct column_reader {
    struct buf flat;
};

void column_reader_init(struct column_reader *reader);
void column_reader_fini(struct column_reader *reader);

/* Cut the next column, of count numbers, off *rest; false when it is malformed. */
bool column_take_u32(struct column_reader *reader, struct span *rest, uint32_t *values,
                     size_t count);
bool column_take_u64(struct column_reader *reader, struct span *rest, uint64_t *values,
                     size_t count);
/* Borrowed from *rest or from the reader until its next column. */
bool column_take_bytes(struct column_reader *reader, struct span *rest, struct span *ret_bytes);
/* Could the next column have count numbers, by its size? To be asked before there is room for them.
 */
bool column_can_hold(struct span rest, size_t count);

/* Signed numbers as unsigned ones that are small when they are near 0. */
static inline uint64_t column_zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
}
static inline int64_t column_unzigzag(uint64_t number)
{
    return (int64_t)(number >> 1 ^ (~(number & 1) + 1));
}

#endif

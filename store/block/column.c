#include "store/block/column.h"

#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "store/block/block_format.h"

#include <assert.h>

enum {
    SIZES_BYTES = 2 * sizeof(uint32_t),
    SMALLEST_TO_COMPRESS = 64, /* below that, the header of a zstd frame outweighs the saving */
    SAVING_WORTH_IT = 8        /* a compressed column must save 1/8 */
};

void column_writer_init(struct column_writer *writer, int level, enum bitpack_effort effort)
{
    writer->effort = effort;
    buf_init(&writer->packed, BLOCK_SECTION_MAX_BYTES);
    writer->level = level;
    writer->zstd = level ? compress_zstd_writer_create() : NULL;
}

void column_writer_fini(struct column_writer *writer)
{
    buf_fini(&writer->packed);
    compress_zstd_writer_destroy(writer->zstd);
}

static void set_u32(struct buf *output, size_t at, size_t number)
{
    const uint32_t stored = (uint32_t)number;
    memcpy(output->data + at, &stored, sizeof(stored));
}

void column_append_bytes(struct column_writer *writer, struct buf *output, struct span bytes)
{
    const size_t begin = output->size;
    buf_append_u32(output, (uint32_t)bytes.size);
    buf_append_u32(output, 0);
    if (writer->level && bytes.size >= SMALLEST_TO_COMPRESS) {
        struct err err;
        if (!compress_zstd_with(writer->zstd, bytes, writer->level, output, &err)) {
            const size_t stored = output->size - begin - SIZES_BYTES;
            if (stored + bytes.size / SAVING_WORTH_IT < bytes.size) {
                set_u32(output, begin, stored);
                set_u32(output, begin + sizeof(uint32_t), bytes.size);
                return;
            }
            output->size = begin + SIZES_BYTES;
        }
    }
    buf_append_span(output, bytes);
}

uint8_t *column_reserve_bytes(struct column_writer *writer, struct buf *output, uint64_t size)
{
    assert(!writer->level);
    buf_append_u32(output, (uint32_t)size);
    buf_append_u32(output, 0);
    uint8_t *bytes = size > BLOCK_SECTION_MAX_BYTES ? NULL : buf_reserve(output, (size_t)size);
    if (bytes)
        buf_commit(output, (size_t)size);
    else
        output->has_failed = true;
    return bytes;
}

/* Begins a column that is packed in place; its size is filled in later. */
static size_t begin_plain(struct buf *output)
{
    const size_t begin = output->size;
    buf_append_u32(output, 0);
    buf_append_u32(output, 0);
    return begin;
}

static void end_plain(struct buf *output, size_t begin)
{
    if (!buf_failed(output))
        set_u32(output, begin, output->size - begin - SIZES_BYTES);
}

void column_append_u32(struct column_writer *writer, struct buf *output, const uint32_t *values,
                       size_t count)
{
    if (!writer->level) {
        const size_t begin = begin_plain(output);
        bitpack_append_u32(output, values, count, writer->effort);
        end_plain(output, begin);
        return;
    }
    buf_clear(&writer->packed);
    bitpack_append_u32(&writer->packed, values, count, writer->effort);
    column_append_bytes(writer, output, buf_span(&writer->packed));
}

void column_append_u64(struct column_writer *writer, struct buf *output, const uint64_t *values,
                       size_t count)
{
    if (!writer->level) {
        const size_t begin = begin_plain(output);
        bitpack_append_u64(output, values, count, writer->effort);
        end_plain(output, begin);
        return;
    }
    buf_clear(&writer->packed);
    bitpack_append_u64(&writer->packed, values, count, writer->effort);
    column_append_bytes(writer, output, buf_span(&writer->packed));
}

void column_reader_init(struct column_reader *reader)
{
    buf_init(&reader->flat, BLOCK_SECTION_MAX_BYTES);
}

void column_reader_fini(struct column_reader *reader)
{
    buf_fini(&reader->flat);
}

/* Takes the stored bytes and their size before zstd (0: not compressed). */
static bool take_stored(struct span *rest, struct span *ret_stored, uint32_t *ret_flat_bytes)
{
    uint32_t sizes[2];
    if (rest->size < SIZES_BYTES)
        return false;
    memcpy(sizes, rest->data, sizeof(sizes));
    if (rest->size - SIZES_BYTES < sizes[0])
        return false;
    *ret_stored = span_of(rest->data + SIZES_BYTES, sizes[0]);
    *ret_flat_bytes = sizes[1];
    *rest = span_of(ret_stored->data + sizes[0], rest->size - SIZES_BYTES - sizes[0]);
    return true;
}

bool column_can_hold(struct span rest, size_t count)
{
    struct span stored;
    uint32_t flat_bytes;
    if (!take_stored(&rest, &stored, &flat_bytes))
        return false;
    if (flat_bytes && !compress_can_expand_to(stored, flat_bytes))
        return false;
    const size_t bytes = flat_bytes ? flat_bytes : stored.size;
    return bytes / BITPACK_RUN_BYTES_MIN >= count / BITPACK_RUN;
}

bool column_take_bytes(struct column_reader *reader, struct span *rest, struct span *ret_bytes)
{
    struct span stored;
    uint32_t flat_bytes;
    if (!take_stored(rest, &stored, &flat_bytes))
        return false;
    if (!flat_bytes) {
        *ret_bytes = stored;
        return true;
    }
    if (flat_bytes > reader->flat.max_size || !compress_can_expand_to(stored, flat_bytes))
        return false;
    buf_clear(&reader->flat);
    if (!compress_expand_exact(stored, buf_reserve(&reader->flat, flat_bytes), flat_bytes))
        return false;
    buf_commit(&reader->flat, flat_bytes);
    *ret_bytes = buf_span(&reader->flat);
    return true;
}

bool column_take_u32(struct column_reader *reader, struct span *rest, uint32_t *values,
                     size_t count)
{
    struct span bytes;
    return column_take_bytes(reader, rest, &bytes) && bitpack_take_u32(&bytes, values, count) &&
           bytes.size == 0;
}

bool column_take_u64(struct column_reader *reader, struct span *rest, uint64_t *values,
                     size_t count)
{
    struct span bytes;
    return column_take_bytes(reader, rest, &bytes) && bitpack_take_u64(&bytes, values, count) &&
           bytes.size == 0;
}

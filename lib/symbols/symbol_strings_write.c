#include "lib/symbols/symbol_strings_write.h"

#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table_format.h"

void symbol_strings_writer_init(struct symbol_strings_writer *writer,
                                enum symbol_strings_level level)
{
    *writer = (struct symbol_strings_writer){.level = level};
    writer->zstd = compress_zstd_writer_create();
    buf_init(&writer->flat, SYMBOL_FRAME_MAX_BYTES);
    buf_init(&writer->frames, UINT32_MAX);
    buf_init(&writer->index, UINT32_MAX);
}

void symbol_strings_writer_fini(struct symbol_strings_writer *writer)
{
    compress_zstd_writer_destroy(writer->zstd);
    buf_fini(&writer->flat);
    buf_fini(&writer->frames);
    buf_fini(&writer->index);
}

static void end_frame(struct symbol_strings_writer *writer)
{
    const struct symbol_table_frame frame = {.first_item = writer->first_in_frame,
                                             .offset = (uint32_t)writer->frames.size,
                                             .flat_bytes = (uint32_t)writer->flat.size};
    struct err err;
    if (compress_zstd_with(writer->zstd, buf_span(&writer->flat), (int)writer->level,
                           &writer->frames, &err))
        writer->has_failed = true;
    buf_append(&writer->index, &frame, sizeof(frame));
    buf_clear(&writer->flat);
    writer->first_in_frame = writer->count;
}

static void append_varint(struct buf *output, uint32_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(output, (uint8_t)(number | 0x80));
    buf_append_byte(output, (uint8_t)number);
}

void symbol_strings_writer_add(struct symbol_strings_writer *writer, struct span first,
                               struct span second)
{
    if (span_equal(first, second))
        second = SPAN_LITERAL("");
    const size_t bytes = first.size + second.size + (size_t)2 * SYMBOL_VARINT_MAX_BYTES;
    if (writer->has_failed)
        return;
    if (writer->flat.size + bytes > SYMBOL_FRAME_MAX_BYTES)
        end_frame(writer);
    append_varint(&writer->flat, (uint32_t)first.size << 1 | (second.size ? 1 : 0));
    if (second.size)
        append_varint(&writer->flat, (uint32_t)second.size);
    buf_append_span(&writer->flat, first);
    buf_append_span(&writer->flat, second);
    writer->count++;
}

void symbol_strings_writer_finish(struct symbol_strings_writer *writer)
{
    if (writer->flat.size)
        end_frame(writer);
    const struct symbol_table_frame end = {.first_item = writer->count,
                                           .offset = (uint32_t)writer->frames.size};
    buf_append(&writer->index, &end, sizeof(end));
}

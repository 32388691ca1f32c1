#include "lib/io/parquet_page.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/compress.h"
#include "lib/base/err.h"
#include "lib/base/map.h"

#include <limits.h>

enum {
    PAGE_MAX_BYTES = INT32_MAX, /* the type of the size in its header */
    /* longer texts have no statistics, because these stay in memory to the end */
    STATISTIC_MAX_BYTES = 256,
    PAGE_DATA = 0,
    PAGE_DICTIONARY = 2,
    ENCODING_PLAIN = 0,
    ENCODING_RLE = 3,
    ENCODING_RLE_DICTIONARY = 8,
    RUN_MIN = 16 /* shorter runs are packed with their neighbours */
};

/* ---- runs and bit-packed groups ---- */

static uint32_t bits_of(uint32_t largest)
{
    return largest ? 32 - (uint32_t)__builtin_clz(largest) : 1;
}

/* Packs groups of eight; the last one is padded with zeros. */
static void append_packed(const uint32_t *values, uint32_t count, uint32_t bits, struct buf *output)
{
    if (!count)
        return;
    uint64_t word = 0;
    uint32_t used = 0;
    const uint32_t groups = (count + 7) / 8;
    thrift_append_varint(output, (uint64_t)groups << 1 | 1);
    uint8_t *at = buf_reserve(output, (size_t)groups * bits);
    if (!at)
        return;
    for (uint32_t i = 0; i < groups * 8; i++) {
        word |= (uint64_t)(i < count ? values[i] : 0) << used;
        for (used += bits; used >= 8; used -= 8, word >>= 8)
            *at++ = (uint8_t)word;
    }
    buf_commit(output, (size_t)groups * bits);
}

static void append_run(uint32_t value, uint32_t count, uint32_t bits, struct buf *output)
{
    thrift_append_varint(output, (uint64_t)count << 1);
    for (uint32_t i = 0; i < bits; i += 8)
        buf_append_byte(output, (uint8_t)(value >> i));
}

static void append_hybrid(const uint32_t *values, uint32_t count, uint32_t bits, struct buf *output)
{
    uint32_t from = 0; /* start of the values to be packed */
    for (uint32_t i = 0; i < count;) {
        uint32_t end = i + 1;
        while (end < count && values[end] == values[i])
            end++;
        /* Only whole groups may precede a run. */
        const uint32_t first = from + (i - from + 7) / 8 * 8;
        if (end - i < RUN_MIN || first + 8 > end) {
            i = end;
            continue;
        }
        append_packed(values + from, first - from, bits, output);
        append_run(values[i], end - first, bits, output);
        i = from = end;
    }
    append_packed(values + from, count - from, bits, output);
}

static void append_levels(const uint32_t *levels, uint32_t count, struct buf *output)
{
    const size_t at = output->size;
    buf_append_u32(output, 0);
    append_hybrid(levels, count, 1, output);
    const uint32_t size = (uint32_t)(output->size - at - sizeof(uint32_t));
    if (!buf_failed(output))
        memcpy(output->data + at, &size, sizeof(size));
}

/* ---- values ---- */

static void append_plain(enum parquet_type type, const struct parquet_value *value,
                         struct buf *output)
{
    if (type != PARQUET_TEXT) {
        buf_append_u64(output, (uint64_t)value->number);
        return;
    }
    buf_append_u32(output, (uint32_t)value->text.size);
    buf_append_span(output, value->text);
}

static int compare(enum parquet_type type, const struct parquet_value *a,
                   const struct parquet_value *b)
{
    if (type == PARQUET_TEXT)
        return span_compare(a->text, b->text);
    if (type == PARQUET_U64)
        return ((uint64_t)a->number > (uint64_t)b->number) -
               ((uint64_t)a->number < (uint64_t)b->number);
    return (a->number > b->number) - (a->number < b->number);
}

/* The distinct values of a leaf, and the index among them for each of its entries. */
struct distinct {
    const struct parquet_value **values;
    uint32_t *number_of_entry;
    uint32_t count;
};

static void find_distinct(const struct parquet_leaf *leaf, struct arena *arena,
                          struct distinct *distinct)
{
    struct map_bytes texts = {0};
    struct map_u64 numbers = {0};
    distinct->values = arena_new_raw(arena, const struct parquet_value *, leaf->entry_count);
    distinct->number_of_entry = arena_new_raw(arena, uint32_t, leaf->entry_count);
    distinct->count = 0;
    for (uint32_t i = 0; i < leaf->entry_count; i++) {
        const struct parquet_value *value = &leaf->entries[(size_t)i * leaf->stride];
        const uint32_t number =
            leaf->type == PARQUET_TEXT
                ? map_bytes_add(&texts, value->text, distinct->count)
                : map_u64_add(&numbers, (uint64_t)value->number, distinct->count);
        distinct->number_of_entry[i] = number;
        if (number == distinct->count)
            distinct->values[distinct->count++] = value;
    }
    map_bytes_fini(&texts);
    map_u64_fini(&numbers);
}

static void find_range(const struct parquet_leaf *leaf, const struct distinct *distinct,
                       struct parquet_chunk *chunk)
{
    chunk->has_range = leaf->has_statistics && distinct->count;
    for (uint32_t i = 0; chunk->has_range && i < distinct->count; i++) {
        const struct parquet_value *value = distinct->values[i];
        if (!i || compare(leaf->type, value, &chunk->smallest) < 0)
            chunk->smallest = *value;
        if (!i || compare(leaf->type, value, &chunk->largest) > 0)
            chunk->largest = *value;
    }
    chunk->has_range &= chunk->smallest.text.size <= STATISTIC_MAX_BYTES &&
                        chunk->largest.text.size <= STATISTIC_MAX_BYTES;
}

/* ---- pages ---- */

/* A column chunk while it is written. */
struct chunk_writer {
    const struct parquet_leaf *leaf;
    const struct parquet_limits *limits;
    const struct parquet_sink *sink;
    struct distinct distinct;
    const uint32_t *numbers; /* dictionary index per value; NULL: no dictionary */
    struct parquet_chunk chunk;
};

/* Compresses and writes a page with its header; `page` is the uncompressed content. */
static enum err_code append_page(struct chunk_writer *writer, const struct buf *page, int kind,
                                 uint32_t value_count, int encoding, struct err *err)
{
    buf_auto packed, output;
    buf_init(&packed, PAGE_MAX_BYTES);
    buf_init(&output, (size_t)2 * PAGE_MAX_BYTES);
    if (buf_failed(page))
        return err_set(err, ERR_TOO_LARGE, "a page of more than %d bytes", PAGE_MAX_BYTES);
    enum err_code code = compress_zstd(buf_span(page), COMPRESS_ZSTD_FAST, &packed, err);
    if (code)
        return code;
    struct thrift header;
    thrift_init(&header, &output);
    thrift_i32(&header, 1, kind);
    thrift_i32(&header, 2, (int32_t)page->size);
    thrift_i32(&header, 3, (int32_t)packed.size);
    thrift_begin(&header, kind == PAGE_DATA ? 5 : 7);
    thrift_i32(&header, 1, (int32_t)value_count);
    thrift_i32(&header, 2, encoding);
    if (kind == PAGE_DATA) {
        thrift_i32(&header, 3, ENCODING_RLE);
        thrift_i32(&header, 4, ENCODING_RLE);
    }
    thrift_end(&header);
    thrift_end(&header);
    const size_t header_bytes = output.size;
    buf_append_span(&output, buf_span(&packed));
    writer->chunk.flat_bytes += header_bytes + page->size;
    writer->chunk.stored_bytes += header_bytes + packed.size;
    return writer->sink->append(writer->sink->context, buf_span(&output), err);
}

static uint64_t plain_bytes(enum parquet_type type, const struct parquet_value *value)
{
    return type == PARQUET_TEXT ? sizeof(uint32_t) + value->text.size : sizeof(uint64_t);
}

/* Whether a dictionary saves space: most values must be repeated. It has to fit into one page,
 * which readers and the format limit. */
static bool wants_dictionary(const struct chunk_writer *writer)
{
    const struct distinct *distinct = &writer->distinct;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < distinct->count; i++)
        bytes += plain_bytes(writer->leaf->type, distinct->values[i]);
    return distinct->count && distinct->count <= writer->leaf->number_count / 2 &&
           bytes <= writer->limits->dictionary_bytes;
}

static enum err_code write_dictionary(struct chunk_writer *writer, struct arena *arena,
                                      struct err *err)
{
    const struct parquet_leaf *leaf = writer->leaf;
    const struct distinct *distinct = &writer->distinct;
    uint32_t *numbers = arena_new_raw(arena, uint32_t, leaf->number_count + (size_t)1);
    for (uint32_t i = 0; i < leaf->number_count; i++)
        numbers[i] = distinct->number_of_entry[leaf->numbers[i]];
    writer->numbers = numbers;
    buf_auto page;
    buf_init(&page, PAGE_MAX_BYTES);
    for (uint32_t i = 0; i < distinct->count; i++)
        append_plain(leaf->type, distinct->values[i], &page);
    return append_page(writer, &page, PAGE_DICTIONARY, distinct->count, ENCODING_PLAIN, err);
}

/* The values and nulls (levels) of a data page, and the leaf's values that they refer to. */
struct page_range {
    uint32_t first_level, level_end;
    uint32_t first_value, value_end;
};

static const struct parquet_value *value_at(const struct chunk_writer *writer, uint32_t value)
{
    const struct distinct *distinct = &writer->distinct;
    return distinct->values[distinct->number_of_entry[writer->leaf->numbers[value]]];
}

/* Finds the end of a page, which is the end of the row that fills it, unless that row is far too
 * large for a page. */
static void find_page_end(const struct chunk_writer *writer, struct page_range *range)
{
    enum { ROW_PAGES_MAX = 32 };
    const struct parquet_levels *levels = &writer->leaf->levels;
    const uint64_t full_bytes = writer->limits->page_bytes;
    uint64_t bytes = 0;
    range->value_end = range->first_value;
    for (range->level_end = range->first_level; range->level_end < levels->count;
         range->level_end++) {
        const uint32_t level = range->level_end;
        const bool begins_row = !levels->repetition || !levels->repetition[level];
        if (level > range->first_level &&
            bytes >= (begins_row ? full_bytes : full_bytes * ROW_PAGES_MAX))
            return;
        if (levels->definition && !levels->definition[level])
            continue;
        bytes += writer->numbers
                     ? sizeof(uint32_t)
                     : plain_bytes(writer->leaf->type, value_at(writer, range->value_end));
        range->value_end++;
    }
}

static enum err_code write_data_page(struct chunk_writer *writer, const struct page_range *range,
                                     struct err *err)
{
    const struct parquet_levels *levels = &writer->leaf->levels;
    const uint32_t level_count = range->level_end - range->first_level;
    buf_auto page;
    buf_init(&page, PAGE_MAX_BYTES);
    if (levels->repetition)
        append_levels(levels->repetition + range->first_level, level_count, &page);
    if (levels->definition)
        append_levels(levels->definition + range->first_level, level_count, &page);
    if (writer->numbers) {
        const uint32_t bits = bits_of(writer->distinct.count - 1);
        buf_append_byte(&page, (uint8_t)bits);
        append_hybrid(writer->numbers + range->first_value, range->value_end - range->first_value,
                      bits, &page);
    }
    for (uint32_t i = range->first_value; !writer->numbers && i < range->value_end; i++)
        append_plain(writer->leaf->type, value_at(writer, i), &page);
    return append_page(writer, &page, PAGE_DATA, level_count,
                       writer->numbers ? ENCODING_RLE_DICTIONARY : ENCODING_PLAIN, err);
}

enum err_code parquet_page_write(const struct parquet_leaf *leaf,
                                 const struct parquet_limits *limits, uint64_t offset,
                                 const struct parquet_sink *sink, struct parquet_chunk *ret_chunk,
                                 struct err *err)
{
    arena_auto arena = arena_create();
    struct chunk_writer writer = {
        .leaf = leaf,
        .limits = limits,
        .sink = sink,
        .chunk = {.offset = offset,
                  .value_count = leaf->levels.count,
                  .null_count = leaf->levels.count - leaf->number_count},
    };
    enum err_code code = ERR_NONE;
    find_distinct(leaf, arena, &writer.distinct);
    find_range(leaf, &writer.distinct, &writer.chunk);
    writer.chunk.has_dictionary = wants_dictionary(&writer);
    if (writer.chunk.has_dictionary)
        code = write_dictionary(&writer, arena, err);
    writer.chunk.data_offset = offset + writer.chunk.stored_bytes;
    struct page_range range = {0};
    while (!code && range.level_end < leaf->levels.count) {
        range.first_level = range.level_end;
        range.first_value = range.value_end;
        find_page_end(&writer, &range);
        code = write_data_page(&writer, &range, err);
    }
    if (!code)
        *ret_chunk = writer.chunk;
    return code;
}

static void describe_value(enum parquet_type type, const struct parquet_value *value, int16_t field,
                           struct thrift *thrift)
{
    thrift_text(thrift, field,
                type == PARQUET_TEXT ? value->text : span_of(&value->number, sizeof(int64_t)));
}

void parquet_page_describe(enum parquet_type type, const struct parquet_chunk *chunk,
                           struct thrift *thrift)
{
    thrift_begin(thrift, 12);
    thrift_i64(thrift, 3, chunk->null_count);
    if (chunk->has_range) {
        describe_value(type, &chunk->largest, 5, thrift);
        describe_value(type, &chunk->smallest, 6, thrift);
    }
    thrift_end(thrift);
}

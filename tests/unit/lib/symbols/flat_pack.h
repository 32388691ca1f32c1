/*
 * flat_pack: packed symbol tables (lib/symbols/symbol_pack_format.h) with uncompressed columns, so
 * that tests can change single numbers: the header, the size of each column as u32, the columns.
 */
#ifndef TESTS_UNIT_LIB_SYMBOLS_FLAT_PACK_H
#define TESTS_UNIT_LIB_SYMBOLS_FLAT_PACK_H

#include "lib/base/buf.h"
#include "lib/base/compress.h"
#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/symbols/symbol_pack.h"
#include "lib/symbols/symbol_pack_format.h"

#include <stdlib.h>

enum {
    FLAT_PACK_HEAD_BYTES =
        sizeof(struct symbol_table_header) + SYMBOL_PACK_COLUMNS * sizeof(uint32_t)
};

static inline void flat_pack_check(bool is_true)
{
    if (!is_true)
        abort();
}

/* Appends the flat form of packed, which must be valid. */
static inline void flat_pack_open(struct span packed, struct buf *flat)
{
    struct symbol_pack_column columns[SYMBOL_PACK_COLUMNS];
    const uint8_t *at = packed.data + sizeof(struct symbol_table_header);
    memcpy(columns, at, sizeof(columns));
    at += sizeof(columns);
    buf_append(flat, packed.data, sizeof(struct symbol_table_header));
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++)
        buf_append_u32(flat, (uint32_t)columns[i].flat_bytes);
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++) {
        const size_t bytes = (size_t)columns[i].flat_bytes;
        uint8_t *space = buf_reserve(flat, bytes + 1);
        flat_pack_check(space != NULL);
        if (bytes)
            flat_pack_check(
                compress_expand_exact(span_of(at, (size_t)columns[i].packed_bytes), space, bytes));
        buf_commit(flat, bytes);
        at += columns[i].packed_bytes;
    }
}

/* Appends the packed form of any bytes, with correct lengths and checksums: a column that extends
 * beyond the end is cut there. Appends nothing if flat has no complete header and sizes. */
static inline void flat_pack_close(struct span flat, struct buf *packed)
{
    struct symbol_table_header header = {0};
    struct symbol_pack_column columns[SYMBOL_PACK_COLUMNS];
    struct err err;
    buf_auto bytes;
    buf_init(&bytes, SYMBOL_PACK_FLAT_MAX_BYTES);
    if (flat.size < FLAT_PACK_HEAD_BYTES)
        return;
    memcpy(&header, flat.data, sizeof(header));
    struct span rest = span_of(flat.data + FLAT_PACK_HEAD_BYTES, flat.size - FLAT_PACK_HEAD_BYTES);
    for (int i = 0; i < SYMBOL_PACK_COLUMNS; i++) {
        uint32_t size;
        memcpy(&size, flat.data + sizeof(header) + (size_t)i * sizeof(size), sizeof(size));
        size = size < rest.size ? size : (uint32_t)rest.size;
        const size_t before = bytes.size;
        if (size)
            flat_pack_check(!compress_zstd(span_of(rest.data, size), 1, &bytes, &err));
        columns[i] =
            (struct symbol_pack_column){.packed_bytes = bytes.size - before, .flat_bytes = size};
        rest = span_of(rest.data + size, rest.size - size);
    }
    header.section_count = SYMBOL_PACK_COLUMNS;
    header.table_bytes = sizeof(header) + sizeof(columns) + bytes.size;
    header.crc = 0;
    header.crc = crc32c_extend(
        crc32c_extend(crc32c(span_of(&header, sizeof(header))), span_of(columns, sizeof(columns))),
        buf_span(&bytes));
    buf_append(packed, &header, sizeof(header));
    buf_append(packed, columns, sizeof(columns));
    buf_append_span(packed, buf_span(&bytes));
}

#endif

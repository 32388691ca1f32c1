/*
 * symbol_strings_write: compresses names and paths into zstd frames of 64 KiB as they arrive.
 *
 * An item is one or two strings: varint(size << 1 | has a second string), varint(size of the second
 * string) if there is one, and the bytes. Only the current frame is kept uncompressed. Threads:
 * one.
 */
#ifndef LIB_SYMBOLS_SYMBOL_STRINGS_WRITE_H
#define LIB_SYMBOLS_SYMBOL_STRINGS_WRITE_H

#include "lib/base/buf.h"

/* zstd levels. On C++ names, level 6 takes a third of the time of level 9 for 4 % more bytes,
 * and 3 saves little more time. Level 1 is for tables that are soon replaced: a quarter of the
 * time of level 6, a fifth more bytes. */
enum symbol_strings_level { SYMBOL_STRINGS_QUICK = 1, SYMBOL_STRINGS_SMALL = 6 };

struct compress_zstd_writer;

struct symbol_strings_writer {
    struct buf flat;
    struct buf frames; /* compressed */
    struct buf index;  /* array of struct symbol_table_frame */
    struct compress_zstd_writer *zstd;
    enum symbol_strings_level level;
    uint32_t count;
    uint32_t first_in_frame;
    bool has_failed; /* the frames exceed 32-bit offsets */
};

void symbol_strings_writer_init(struct symbol_strings_writer *writer,
                                enum symbol_strings_level level);
void symbol_strings_writer_fini(struct symbol_strings_writer *writer);
/* Adds an item. Both strings together must be smaller than SYMBOL_FRAME_MAX_BYTES - 16. If
 * second is empty or equal to first, only one string is stored. */
void symbol_strings_writer_add(struct symbol_strings_writer *writer, struct span first,
                               struct span second);
/* Writes the last frame and the end of the index. */
void symbol_strings_writer_finish(struct symbol_strings_writer *writer);

#endif

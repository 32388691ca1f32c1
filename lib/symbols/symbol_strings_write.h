/*
 * symbol_strings_write: names and paths, packed into zstd frames of 64 KiB as they come.
 *
 * An item is one or two strings: varint size << 1 | has a second; varint its size; the bytes.
 * Only what is not yet a frame is kept flat. Threads: one.
 */
#ifndef LIB_SYMBOLS_SYMBOL_STRINGS_WRITE_H
#define LIB_SYMBOLS_SYMBOL_STRINGS_WRITE_H

#include "lib/base/buf.h"

/* Of zstd. 6 takes a third of the time of 9 for 4 % more bytes on C++ names, 3 saves little more;
 * 1 is for a table that another soon takes the place of: a quarter of 6's time, a fifth more bytes.
 */
enum symbol_strings_level { SYMBOL_STRINGS_QUICK = 1, SYMBOL_STRINGS_SMALL = 6 };

struct compress_zstd_writer;

struct symbol_strings_writer {
    struct buf flat;
    struct buf frames; /* compressed */
    struct buf index;  /* struct symbol_table_frame */
    struct compress_zstd_writer *zstd;
    enum symbol_strings_level level;
    uint32_t count;
    uint32_t first_in_frame;
    bool has_failed; /* more than fits in 32 bits */
};

void symbol_strings_writer_init(struct symbol_strings_writer *writer,
                                enum symbol_strings_level level);
void symbol_strings_writer_fini(struct symbol_strings_writer *writer);
/* Both together below SYMBOL_FRAME_MAX_BYTES less 16; a second that is empty, or
 * the first once more, is none. */
void symbol_strings_writer_add(struct symbol_strings_writer *writer, struct span first,
                               struct span second);
/* Ends the last frame and the index. */
void symbol_strings_writer_finish(struct symbol_strings_writer *writer);

#endif

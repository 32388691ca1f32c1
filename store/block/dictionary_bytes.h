/*
 * dictionary_bytes: writes a dictionary as the sections of a block, and reads it. Private to
 * store/block.
 *
 * The sections consist of columns (store/block/block_format.h) that are not compressed one by one:
 *
 *   STRINGS     u32 count; bytes shared with the string before; count of the other bytes;
 *               the other bytes
 *   TABLES      u32 mappings, functions, lines, locations; then column by column:
 *                 mapping   start, limit, offset, filename, build id, bits has_*
 *                 function  name, system name (0: equal to name; else + 1), filename,
 *                           start line (zigzag)
 *                 line      function + 1, line, column (zigzag)
 *                 location  mapping + 1, address less the one before (zigzag), lines,
 *                           is_folded
 *   STACKS      u32 nodes (without the root), stacks (without stack 0); steps; frames;
 *               bits
 *   LABEL_SETS  u32 sets, labels, links; labels of each set; has it a link; bytes of the
 *               links; then per label: key, kind (0 text, 1 number), text, number
 *               (zigzag), unit
 *   SERIES      u32 series, labels; name, type, unit, period's type, its unit, enum
 *               batch_kind, label count; then per label: name, value
 */
#ifndef STORE_BLOCK_DICTIONARY_BYTES_H
#define STORE_BLOCK_DICTIONARY_BYTES_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"
#include "store/block/bitpack.h"
#include "store/block/block_format.h"

struct arena;
struct dictionary;

/* Whether a reader accepts the dictionary: its strings together, and each table, are small enough.
 * Strings are stored without the prefix that they share with the string before, so their stored
 * size does not bound their size in memory. */
bool dictionary_is_readable(const struct dictionary *dictionary);
/* Appends a section (any but BLOCK_GRANULES) to output. */
void dictionary_write_section(const struct dictionary *dictionary, enum block_section section,
                              enum bitpack_effort effort, struct buf *output);

/*
 * Reads strings, label sets and series into arena, without tables and stacks. When the strings are
 * out of proportion to row_count (store/block/oversized.h), only those of series and label sets are
 * read (has_few_strings), and the others are empty. The sections' bytes are not borrowed. Every
 * number is checked. Errors: ERR_CORRUPT.
 */
enum err_code dictionary_read_series(struct arena *arena,
                                     const struct span sections[BLOCK_SECTION_COUNT],
                                     uint64_t row_count, struct dictionary *ret_dictionary,
                                     struct err *err) MUST_USE;
/* Adds tables and stacks to such a dictionary, and all strings where it has few; nothing else
 * moves. Errors: ERR_CORRUPT. */
enum err_code dictionary_read_stacks(struct arena *arena,
                                     const struct span sections[BLOCK_SECTION_COUNT],
                                     struct dictionary *dictionary, struct err *err) MUST_USE;

#endif

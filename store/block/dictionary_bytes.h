/*
 * dictionary_bytes: a dictionary as the sections of a block, and back. Private to store/block_*.
 *
 * The sections, of columns as store/block/block_format.h tells (not compressed one by one):
 *   STRINGS     u32 count; bytes shared with the string before; the others' count; the others
 *   TABLES      u32 mappings, functions, lines, locations; then column by column
 *               mapping: start, limit, offset, filename, build id, bits has_*
 *               function: name, system name (0: the name's; else + 1), filename, start line
 * (zigzag) line: function + 1, line, column (zigzag) location: mapping + 1, address - the one
 * before (zigzag), lines, is_folded STACKS      u32 nodes (without the root), stacks (without stack
 * 0); steps; frames; bits LABEL_SETS  u32 sets, labels, links; labels of each set, has it a link;
 * links' bytes; then per label: key, kind (0 text, 1 number), text, number (zigzag), unit SERIES
 * u32 series, labels; name, type, unit, period's type, its unit, is_delta, label count; then per
 * label: name, value
 */
#ifndef STORE_BLOCK_DICTIONARY_BYTES_H
#define STORE_BLOCK_DICTIONARY_BYTES_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "store/block/bitpack.h"
#include "store/block/block_format.h"

struct arena;
struct dictionary;

/* Appends the section (each but BLOCK_GRANULES) to output. */
void dictionary_write_section(const struct dictionary *dictionary, enum block_section section,
                              enum bitpack_effort effort, struct buf *output);

/*
 * Reads strings, label sets and series into arena, and no tables nor stacks: there are none then.
 * When the strings are out of proportion to row_count (store/block/oversized.h), only those of
 * series and label sets are there (has_few_strings), and the others are empty. The sections' bytes
 * are not borrowed. Every number is checked. Handles: ERR_CORRUPT.
 */
enum err_code dictionary_read_series(struct arena *arena,
                                     const struct span sections[BLOCK_SECTION_COUNT],
                                     uint64_t row_count, struct dictionary *ret_dictionary,
                                     struct err *err) MUST_USE;
/* Reads tables and stacks, too, as above, and all strings where there are few; all else stays where
 * it is. */
enum err_code dictionary_read_stacks(struct arena *arena,
                                     const struct span sections[BLOCK_SECTION_COUNT],
                                     struct dictionary *dictionary, struct err *err) MUST_USE;

#endif

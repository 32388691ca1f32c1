/*
 * symbol_table: from an address of a binary to its functions, files and lines, inlined calls too.
 *
 * A table is a file that symbol_table_write made, of one binary; it is read in place, from a
 * mapping, so that what is resident is what was asked for. Whoever made the bytes is not trusted:
 * whatever they are, no call reads outside of them, runs long, or gives a number that is out of
 * bounds. symbol_table_open looks at the header and the index; symbol_table_verify at every byte,
 * and is for the moment when a table comes from somewhere else.
 *
 *     struct symbol_cursor cursor;
 *     symbol_cursor_init(&cursor, table);
 *     uint32_t count = symbol_cursor_find(&cursor, address);
 *     for (uint32_t i = 0; i < count; i++)  … cursor.frames[i] …      leaf first
 *
 * Names are in symbol_names.h; resolve them once per distinct function, not per address.
 * Threads: any number share a table; a cursor belongs to one. A file that is mapped must never be
 * changed or cut short: replace it by renaming another over it.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_H
#define LIB_SYMBOLS_SYMBOL_TABLE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/symbols/symbol_table_facts.h"

#include <stdint.h>

struct symbol_table;

/*
 * Opens the table in bytes, which are borrowed and must outlive it, or in the file of fd, which is
 * mapped and may be closed. Handles: ERR_INVALID (no symbol table), ERR_UNSUPPORTED (of a newer
 * version), ERR_CORRUPT (damaged, cut short), ERR_IO.
 */
enum err_code symbol_table_open(struct span bytes, struct symbol_table **ret_table,
                                struct err *err) MUST_USE;
enum err_code symbol_table_open_fd(int fd, struct symbol_table **ret_table,
                                   struct err *err) MUST_USE;
void symbol_table_close(struct symbol_table *table); /* NULL is a no-op */

/*
 * Is every byte as it was written, and everything in it in bounds and in order? Reads all of it and
 * expands all names once: 0.2 CPU seconds for a million ranges. Handles: ERR_CORRUPT.
 */
enum err_code symbol_table_verify(const struct symbol_table *table, struct err *err) MUST_USE;

const struct symbol_table_facts *symbol_table_facts(const struct symbol_table *table);

struct symbol_table_sizes {
    uint64_t bytes;
    uint64_t first_address;
    uint64_t end_address;
    uint32_t records; /* places where node or line change, gaps too */
    uint32_t nodes;
    uint32_t functions;
    uint32_t files;
    uint32_t segments;
};
struct symbol_table_sizes symbol_table_sizes(const struct symbol_table *table);
/* number below sizes.segments. */
struct symbol_segment symbol_table_segment(const struct symbol_table *table, uint32_t number);

struct symbol_frame {
    uint32_t function;
    uint32_t file; /* or SYMBOL_NONE */
    uint32_t line; /* 0: unknown */
};

/* Where the last answer came from: an address of the same group of records, or of the next ones, is
 * found without a search, and one of the same record has the answer already. */
struct symbol_cursor {
    const struct symbol_table *table;
    struct symbol_frame frames[SYMBOL_DEPTH_MAX]; /* the answer: leaf first, the outermost last */
    uint32_t group;                               /* of records; SYMBOL_NONE: none yet */
    uint32_t group_begin;                         /* addresses, from the table's first one */
    uint32_t group_bytes;                         /* to the next group */
    uint32_t group_records;
    const uint8_t *addresses;
    const uint8_t *bits;
    uint32_t node_base;
    int32_t line_base;
    uint32_t file_mask;
    uint8_t address_shift;
    uint8_t node_bits;
    uint8_t line_bits;
    uint8_t file_bits;
    uint32_t record;      /* of the group; SYMBOL_NONE: none yet */
    uint32_t count;       /* its frames */
    uint32_t framed_node; /* whose frames are in frames; SYMBOL_NONE: none */
    uint32_t frame_count;
    uint32_t own_file; /* of the leaf's declaration */
    uint32_t own_line;
};

void symbol_cursor_init(struct symbol_cursor *cursor, const struct symbol_table *table);
/*
 * How many frames the address has, in cursor->frames until the next call; 0: nothing is known of
 * it. Addresses may come in any order; ascending ones are faster. A return address is asked for
 * less 1, which lies in the call. A frame whose function has an empty name is known by its line
 * alone.
 */
uint32_t symbol_cursor_find(struct symbol_cursor *cursor, uint64_t address);

#endif

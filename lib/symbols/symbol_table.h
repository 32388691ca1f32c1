/*
 * symbol_table: finds the functions, files and lines of an address of a binary, including inlined
 * calls.
 *
 * A table is a file about one binary that symbol_table_writer made. It is mapped and read in place,
 * so only the pages that are used become resident. The bytes are untrusted: whatever they contain,
 * no call reads out of bounds, takes long, or returns a number that is out of bounds.
 * symbol_table_open checks the header and the index. symbol_table_verify checks every byte; call it
 * when a table arrives from outside.
 *
 *     struct symbol_cursor cursor;
 *     symbol_cursor_init(&cursor, table);
 *     uint32_t count = symbol_cursor_find(&cursor, address);
 *     for (uint32_t i = 0; i < count; i++)  … cursor.frames[i] …      leaf first
 *
 * Names are in symbol_names.h; resolve them once per distinct function, not per address. Threads: a
 * table may be shared by any number of threads; a cursor belongs to one. A mapped file must never
 * be modified or truncated: replace it by renaming another file over it.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_H
#define LIB_SYMBOLS_SYMBOL_TABLE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"
#include "lib/symbols/symbol_table_facts.h"

#include <stdint.h>

struct symbol_table;

/*
 * Opens the table in bytes, which are borrowed and must outlive it, or in the file fd, which is
 * mapped; the caller may close fd. Errors: ERR_INVALID (not a symbol table), ERR_UNSUPPORTED
 * (newer version), ERR_CORRUPT (damaged, truncated), ERR_IO.
 */
enum err_code symbol_table_open(struct span bytes, struct symbol_table **ret_table,
                                struct err *err) MUST_USE;
enum err_code symbol_table_open_fd(int fd, struct symbol_table **ret_table,
                                   struct err *err) MUST_USE;
void symbol_table_close(struct symbol_table *table); /* NULL is a no-op */
/* Checks whether all pages of a mapped table that were accessed so far could be read; call it after
 * lookups. Errors: ERR_IO with is_unreadable: results may be wrong, and the table has to be opened
 * again. */
enum err_code symbol_table_check(const struct symbol_table *table, struct err *err) MUST_USE;

/*
 * Verifies all checksums and that all numbers are in bounds and in order. Reads the whole table and
 * expands all names once: 0.2 CPU seconds for a million ranges. Errors: ERR_CORRUPT.
 */
enum err_code symbol_table_verify(const struct symbol_table *table, struct err *err) MUST_USE;

const struct symbol_table_facts *symbol_table_facts(const struct symbol_table *table);

struct symbol_table_sizes {
    uint64_t bytes;
    uint64_t first_address;
    uint64_t end_address;
    uint32_t records; /* addresses where node or line change, including gaps */
    uint32_t nodes;
    uint32_t functions;
    uint32_t files;
    uint32_t segments;
};
struct symbol_table_sizes symbol_table_sizes(const struct symbol_table *table);
/* number must be less than sizes.segments. */
struct symbol_segment symbol_table_segment(const struct symbol_table *table, uint32_t number);

struct symbol_frame {
    uint32_t function;
    uint32_t file; /* or SYMBOL_NONE */
    uint32_t line; /* 0: unknown */
};

/* The position of the last lookup. An address in the same group of records or in one of the next
 * ones is found without a search, and an address of the same record reuses the frames. */
struct symbol_cursor {
    const struct symbol_table *table;
    /* the result: leaf first, the outermost function last */
    struct symbol_frame frames[SYMBOL_DEPTH_MAX];
    uint32_t group;       /* current group; SYMBOL_NONE: none yet */
    uint32_t group_begin; /* relative to the table's first address */
    uint32_t group_bytes; /* distance to the next group */
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
    uint32_t record;      /* index in the group; SYMBOL_NONE: none yet */
    uint32_t count;       /* frames of that record; 0: a gap */
    uint32_t framed_node; /* the node whose frames are in frames; SYMBOL_NONE: none */
    uint32_t frame_count; /* of framed_node */
    uint32_t own_file;    /* file and line of the declaration of the leaf function */
    uint32_t own_line;
};

void symbol_cursor_init(struct symbol_cursor *cursor, const struct symbol_table *table);
/*
 * Finds the frames of an address. Returns their number, 0 if nothing is known about the address;
 * they are in cursor->frames until the next call. Addresses may come in any order, but ascending
 * ones are faster. For a return address, pass the address minus 1, which is inside the call. If the
 * function of a frame has an empty name, only its line is known.
 */
uint32_t symbol_cursor_find(struct symbol_cursor *cursor, uint64_t address);

#endif

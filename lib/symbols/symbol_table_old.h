/*
 * symbol_table_old: reads symbol tables of version 1, which servers stored before tables were
 * packed.
 *
 * Version 1 is not read in place; it is converted to the current version in memory. Its layout is
 * that of symbol_table_format.h with these differences:
 *
 *   section 5      u32 per group of 32 nodes: its offset in section 6
 *   RECORDS (4)    each group of 16 records is independent and starts with node 0, line 0 and the
 *                  file of the function's declaration. Per record, varints:
 *                    address - previous address << 1 | node changes
 *                    if the node changes: 0: a gap, nothing follows;
 *                      1 + zigzag(node - previous node), and line and file restart
 *                    zigzag(line - previous line) << 1 | file changes
 *                    if the file changes: 0: that of the declaration; 1 + file
 *   nodes (6)      per group: u32 function_base, i32 line_base, u8 widths of parent, function, line
 *                  and file; if the width of file is not 0, u32: the nodes with a call file of
 *                  their own; then bits: per node parent, function, line; per bit set a file
 *   DECLARATIONS (7) and the sections of names (8 to 11) are the same under other numbers
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_OLD_H
#define LIB_SYMBOLS_SYMBOL_TABLE_OLD_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SYMBOL_TABLE_OLD_VERSION = 1 };

/*
 * Converts bytes, which are untrusted, and appends a table of the current version to output. The
 * result is valid except for the names, which are copied unchecked. Reads the whole table. Handles:
 * ERR_CORRUPT.
 */
enum err_code symbol_table_upgrade(struct span bytes, struct buf *output, struct err *err) MUST_USE;

#endif

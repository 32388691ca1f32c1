/*
 * symbol_table_old: symbol tables of version 1, as servers stored them before tables were packed.
 *
 * They are not read in place: who opens one gets a table of this version, made of it. Version 1 is
 * laid out as symbol_table_format.h says, but for
 *
 *   section 5         u32 per group of 32 nodes: where it begins in section 6
 *   RECORDS (4)       a group of 16 stands alone; it begins with node 0, no line, the function's
 * own file. Varints: address - the one before << 1 | another node; if another node: 0: a gap,
 * nothing follows, else 1 + zigzag(node - the last node), and line and file start again;
 * zigzag(line - the one before) << 1 | another file; if another file: 0: the function's own, else 1
 * + file nodes (6)         a group is u32 function_base, i32 line_base, u8 widths of parent,
 * function, line, file; u32 mask of nodes with a call file of their own, if that width is not 0;
 *                     per node parent, function, line; per bit of the mask a file
 *   PLACES (7) and the names' sections (8 to 11) as they are now, under other numbers
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_OLD_H
#define LIB_SYMBOLS_SYMBOL_TABLE_OLD_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SYMBOL_TABLE_OLD_VERSION = 1 };

/*
 * Appends what bytes, hostile as ever, say as a table of this version. What comes out is sound but
 * for its names, which are as they were. Reads all of it. Handles: ERR_CORRUPT.
 */
enum err_code symbol_table_upgrade(struct span bytes, struct buf *output, struct err *err) MUST_USE;

#endif

/*
 * dwarf_line: reads .debug_line, which maps addresses to files and lines.
 *
 * A table has directories, files and a program; running the program produces rows. Rows come in
 * sequences of ascending addresses; a row is valid until the next row of its sequence. Versions 2
 * to 5.
 */
#ifndef DEBUGINFOD_DWARF_LINE_H
#define DEBUGINFOD_DWARF_LINE_H

#include "debuginfod/code_map.h"
#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct dwarf_unit;
struct dwarf_lines;
struct symbol_table_writer;

/* The code from begin to end belongs to a file (as the table numbers it) and line. */
struct dwarf_row {
    uint64_t begin;
    uint64_t end;
    uint32_t file;
    uint32_t line;
};

/* Rows of one table; reused from unit to unit. All zeros is empty. */
struct dwarf_rows {
    struct dwarf_row *rows;
    size_t count;
    size_t capacity;
};

/* The table of the unit, read at the first call; NULL when it has none or a broken one. */
struct dwarf_lines *dwarf_lines_of(struct dwarf_unit *unit);
void dwarf_lines_destroy(struct dwarf_lines *lines); /* NULL is a no-op */

/* The writer's number of a file of the unit's table; SYMBOL_NONE when there is no such file. */
uint32_t dwarf_lines_file(struct dwarf_unit *unit, uint64_t file,
                          struct symbol_table_writer *writer);

/*
 * Runs the unit's program: rows of code, ascending and without overlaps. Returns false when the
 * table is broken, then without rows, or when its program is truncated, then with the rows of the
 * sequences that have ended. A unit without a table has no rows, and the result is true.
 */
bool dwarf_lines_run(struct dwarf_unit *unit, const struct code_map *code, struct dwarf_rows *rows);
void dwarf_rows_fini(struct dwarf_rows *rows);

/* The offset of the table after the one at offset, or DWARF_NO_OFFSET: for files that have only
 * .debug_line. */
uint64_t dwarf_lines_next(struct span section, uint64_t offset);

#endif

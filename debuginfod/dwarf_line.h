/*
 * dwarf_line: .debug_line: which file and line the code of an address is of.
 *
 * A table has directories, files and a program that, run, gives rows. Rows come in sequences of
 * ascending addresses; a row holds until the next one of its sequence. Versions 2 to 5.
 */
#ifndef DEBUGINFOD_DWARF_LINE_H
#define DEBUGINFOD_DWARF_LINE_H

#include "debuginfod/code_map.h"
#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct dwarf_unit;
struct dwarf_lines;
struct symbol_table_writer;

/* The code from begin to end is of a file (as the table numbers them) and line. */
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

/* The table of the unit, read when it is first asked for; NULL when it has none or a broken one. */
struct dwarf_lines *dwarf_lines_of(struct dwarf_unit *unit);
void dwarf_lines_destroy(struct dwarf_lines *lines); /* NULL is a no-op */

/* The writer's number of a file of the unit's table; SYMBOL_NONE when there is no such file. */
uint32_t dwarf_lines_file(struct dwarf_unit *unit, uint64_t file,
                          struct symbol_table_writer *writer);

/*
 * Runs the unit's program: rows of code, ascending and without overlaps. False: the program breaks
 * off; what it said until then is there. No table is no rows.
 */
bool dwarf_lines_run(struct dwarf_unit *unit, const struct code_map *code, struct dwarf_rows *rows);
void dwarf_rows_fini(struct dwarf_rows *rows);

/* The offset of the table behind the one at offset, DWARF_NO_OFFSET when there is none: for files
 * that have .debug_line alone. */
uint64_t dwarf_lines_next(struct span section, uint64_t offset);

#endif

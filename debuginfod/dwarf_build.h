/*
 * dwarf_build: converts the units of a file to ranges of a symbol table: functions, lines, inlined
 * calls.
 *
 * A unit that cannot be read is left out and counted; its lines are kept if they can be read.
 */
#ifndef DEBUGINFOD_DWARF_BUILD_H
#define DEBUGINFOD_DWARF_BUILD_H

#include "debuginfod/dwarf_file.h"

struct code_map;
struct symbol_table_writer;

struct dwarf_inputs {
    struct dwarf_file *file;
    struct dwarf_file **split_files; /* .dwo files */
    uint32_t split_file_count;
};

struct dwarf_result {
    uint32_t unit_count;   /* with and without code */
    uint32_t broken_units; /* including 1 for all units that follow a broken header */
    uint32_t split_units;
    uint32_t missing_split_units;   /* units in a .dwo file that was not given */
    uint64_t function_ranges;       /* ranges with a function */
    uint64_t line_ranges;           /* ranges with a line */
    struct span missing_split_name; /* the .dwo file of one such unit */
};

/* Adds everything that can be read to the writer. */
void dwarf_build(const struct dwarf_inputs *inputs, const struct code_map *code,
                 struct symbol_table_writer *writer, struct dwarf_result *ret_result);

#endif

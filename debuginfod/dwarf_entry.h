/*
 * dwarf_entry: what an entry of .debug_info says of a function or an inlined call, and which
 * function that is.
 */
#ifndef DEBUGINFOD_DWARF_ENTRY_H
#define DEBUGINFOD_DWARF_ENTRY_H

#include "debuginfod/dwarf_file.h"
#include "debuginfod/dwarf_ranges.h"

struct symbol_table_writer;

enum { DWARF_MAX_HOPS = 16 }; /* from an instance over its origin to its declaration */

struct dwarf_entry {
    struct dwarf_extent extent;
    struct dwarf_value origin; /* DW_AT_abstract_origin, else DW_AT_specification */
    struct dwarf_value linkage_name;
    struct dwarf_value name;
    struct dwarf_value declaration_file;
    uint32_t declaration_line; /* 0: not said */
    uint64_t call_file;
    uint32_t call_line;
    bool has_abstract_origin;
};

/* Reads the values of an entry; the cursor stands behind its code. */
bool dwarf_entry_read(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
                      struct cursor *cursor, struct dwarf_entry *ret_entry);

/*
 * The writer's number of the function that an entry stands for: that of its origin where it has
 * one, so that copies of a function and its inlined calls are the same. SYMBOL_NONE: it has no
 * name.
 */
uint32_t dwarf_entry_function(struct dwarf_unit *unit, const struct dwarf_entry *entry,
                              struct symbol_table_writer *writer);

#endif

/*
 * dwarf_entry: reads the attributes of a function or inlined call in .debug_info, and identifies
 * the function.
 */
#ifndef DEBUGINFOD_DWARF_ENTRY_H
#define DEBUGINFOD_DWARF_ENTRY_H

#include "debuginfod/dwarf_file.h"
#include "debuginfod/dwarf_ranges.h"

struct symbol_table_writer;

/* The most references that are followed: from a copy of a function or an inlined call to its
 * origin, from there to the declaration. */
enum { DWARF_MAX_HOPS = 16 };

struct dwarf_entry {
    struct dwarf_extent extent;
    struct dwarf_value origin; /* DW_AT_abstract_origin, else DW_AT_specification */
    struct dwarf_value linkage_name;
    struct dwarf_value name;
    struct dwarf_value declaration_file;
    uint32_t declaration_line; /* 0: unknown */
    uint64_t call_file;
    uint32_t call_line;
    bool has_abstract_origin;
};

/* Reads the attributes of an entry. The cursor is after the entry's abbreviation code. */
bool dwarf_entry_read(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
                      struct cursor *cursor, struct dwarf_entry *ret_entry);

/*
 * Returns the writer's number of the entry's function; SYMBOL_NONE: the function has no name. If
 * the entry has an abstract origin, the number is the origin's, so that all copies and inlined
 * calls of a function have the same number.
 */
uint32_t dwarf_entry_function(struct dwarf_unit *unit, const struct dwarf_entry *entry,
                              struct symbol_table_writer *writer);

#endif

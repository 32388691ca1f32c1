/*
 * dwarf_scopes: which function the code of an address is of, and into what it was inlined.
 *
 * Walks the entries of a unit and paints the addresses of every function and of every call inlined
 * into it; what is painted later lies on top, so that at the end each address has the innermost.
 */
#ifndef DEBUGINFOD_DWARF_SCOPES_H
#define DEBUGINFOD_DWARF_SCOPES_H

#include "debuginfod/dwarf_ranges.h"

#include <stddef.h>

struct code_map;
struct symbol_table_writer;

enum { DWARF_MAX_NESTING = 2048 }; /* of entries in one another */

/* The code from begin to end is of the writer's node. */
struct dwarf_scope {
    uint64_t begin;
    uint64_t end;
    uint32_t order;
    uint32_t node;
};

/* Reused from unit to unit. All zeros is empty. */
struct dwarf_scopes {
    struct dwarf_scope *painted; /* as they came */
    size_t painted_count;
    size_t painted_capacity;
    struct dwarf_scope *scopes; /* the result: ascending and without overlaps */
    size_t count;
    size_t capacity;
    uint32_t *heap;
    size_t heap_capacity;
    struct dwarf_range_list ranges;
};

/* Fills scopes. False: the unit is broken, and scopes is empty. */
bool dwarf_scopes_read(struct dwarf_unit *unit, const struct code_map *code,
                       struct symbol_table_writer *writer, struct dwarf_scopes *scopes);
void dwarf_scopes_fini(struct dwarf_scopes *scopes);

#endif

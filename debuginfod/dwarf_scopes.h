/*
 * dwarf_scopes: assigns each address of a unit to a function and the calls that were inlined there.
 *
 * Scans the entries of a unit and paints the addresses of each function and of each call inlined
 * into it. Later paint covers earlier paint, so each address finally has the innermost call.
 */
#ifndef DEBUGINFOD_DWARF_SCOPES_H
#define DEBUGINFOD_DWARF_SCOPES_H

#include "debuginfod/dwarf_ranges.h"

#include <stddef.h>

struct code_map;
struct symbol_table_writer;

enum { DWARF_MAX_NESTING = 2048 }; /* levels of nested entries */

/* The code from begin to end belongs to the writer's node. */
struct dwarf_scope {
    uint64_t begin;
    uint64_t end;
    uint32_t order;
    uint32_t node;
};

/* Reused from unit to unit. All zeros is empty. */
struct dwarf_scopes {
    struct dwarf_scope *painted; /* in the order of painting */
    size_t painted_count;
    size_t painted_capacity;
    struct dwarf_scope *scopes; /* the result: ascending and without overlaps */
    size_t count;
    size_t capacity;
    uint32_t *heap;
    size_t heap_capacity;
    struct dwarf_range_list ranges;
};

/* Fills scopes. Returns false when the unit is broken; scopes is then empty. */
bool dwarf_scopes_read(struct dwarf_unit *unit, const struct code_map *code,
                       struct symbol_table_writer *writer, struct dwarf_scopes *scopes);
void dwarf_scopes_fini(struct dwarf_scopes *scopes);

#endif

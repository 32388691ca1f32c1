/*
 * dwarf_ranges: the addresses that an entry covers: low and high, .debug_ranges, .debug_rnglists.
 */
#ifndef DEBUGINFOD_DWARF_RANGES_H
#define DEBUGINFOD_DWARF_RANGES_H

#include "debuginfod/dwarf_file.h"

struct code_map;

enum { DWARF_MAX_RANGES = 1 << 16 }; /* ranges of one entry */

/* The address attributes of an entry. All zeros: none. */
struct dwarf_extent {
    struct dwarf_value low;
    struct dwarf_value high; /* an address, or a size */
    struct dwarf_value ranges;
};

struct dwarf_range {
    uint64_t begin;
    uint64_t end;
};

/* Reused from entry to entry. All zeros is empty. */
struct dwarf_range_list {
    struct dwarf_range *ranges;
    uint32_t count;
    uint32_t capacity;
};

/* Replaces the content of list with the parts of the extent that are code. Returns false when
 * the entry's list is damaged or has more than DWARF_MAX_RANGES. */
bool dwarf_ranges_read(const struct dwarf_unit *unit, const struct dwarf_extent *extent,
                       const struct code_map *code, struct dwarf_range_list *list);
void dwarf_range_list_fini(struct dwarf_range_list *list);

#endif

/*
 * dwarf_abbrev: reads one table of .debug_abbrev, which describes the layout of a unit's entries.
 */
#ifndef DEBUGINFOD_DWARF_ABBREV_H
#define DEBUGINFOD_DWARF_ABBREV_H

#include "lib/base/span.h"

struct dwarf_abbrevs;

/* Returns NULL when the table is damaged or has more attributes than the limit. */
struct dwarf_abbrevs *dwarf_abbrevs_read(struct span section, uint64_t offset,
                                         uint64_t attribute_limit);
void dwarf_abbrevs_destroy(struct dwarf_abbrevs *table); /* NULL is a no-op */

#endif

/*
 * dwarf_abbrev: one table of .debug_abbrev, which says how the entries of a unit are laid out.
 */
#ifndef DEBUGINFOD_DWARF_ABBREV_H
#define DEBUGINFOD_DWARF_ABBREV_H

#include "lib/base/buf.h"

struct dwarf_abbrevs;

/* NULL: it is broken, or has more attributes than the limit. */
struct dwarf_abbrevs *dwarf_abbrevs_read(struct span section, uint64_t offset,
                                         uint64_t attribute_limit);
void dwarf_abbrevs_destroy(struct dwarf_abbrevs *table); /* NULL is a no-op */

#endif

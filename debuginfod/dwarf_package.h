/*
 * dwarf_package: where the units of a `.dwp`, which holds many `.dwo` files, have their parts.
 *
 * A package has the sections of its files one behind the other, and in .debug_cu_index for each
 * unit which piece of each is its own: offsets in a unit count from there. Read are versions 2
 * (GNU, https://gcc.gnu.org/wiki/DebugFissionDWP) and 5 (DWARF 5, section 7.3.5).
 */
#ifndef DEBUGINFOD_DWARF_PACKAGE_H
#define DEBUGINFOD_DWARF_PACKAGE_H

#include "debuginfod/dwarf_file.h"

/*
 * Moves the units of file, whose headers were read, to their pieces. False: the index is damaged,
 * or of a version that is not known; units that it does not reach are left as broken.
 */
bool dwarf_package_apply(struct dwarf_file *file, struct span index) MUST_USE;

#endif

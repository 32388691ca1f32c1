/*
 * dwarf_package: finds the parts of the units in a `.dwp` package, which contains many `.dwo`
 * files.
 *
 * A package concatenates the sections of its files. For each unit, .debug_cu_index lists which part
 * of each section belongs to it; offsets in a unit are relative to that part. Reads versions 2
 * (GNU, https://gcc.gnu.org/wiki/DebugFissionDWP) and 5 (DWARF 5, section 7.3.5).
 */
#ifndef DEBUGINFOD_DWARF_PACKAGE_H
#define DEBUGINFOD_DWARF_PACKAGE_H

#include "debuginfod/dwarf_file.h"

/*
 * Assigns the parts to the units of file, whose headers were read. Returns false when the index is
 * damaged or of an unknown version; units that it does not list are marked as broken.
 */
bool dwarf_package_apply(struct dwarf_file *file, struct span index) MUST_USE;

#endif

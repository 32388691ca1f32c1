/*
 * demangle: converts the names that compilers and linkers generate to names for display.
 *
 * libiberty demangles C++ (Itanium ABI) and Rust (legacy and v0), with limits on input and output.
 * Suffixes of copies that a compiler made (.cold, .constprop.0, .isra.0, .part.0, .llvm.123, …) and
 * versions (@GLIBC_2.2.5) are removed, so that the stacks of all copies merge. Call it only inside
 * the sandbox: libiberty has had bugs with hostile names. Only demangle.c includes libiberty.
 */
#ifndef DEBUGINFOD_DEMANGLE_H
#define DEBUGINFOD_DEMANGLE_H

#include "lib/base/span.h"

struct buf;

enum {
    DEMANGLE_MAX_INPUT_BYTES = 16 << 10, /* longer names are not demangled */
};

/* The source of the names. In Go, main.cold is a separate function, so its suffix is kept. */
enum demangle_names { DEMANGLE_ANY, DEMANGLE_GO };

/* A symbol_demangle_function (lib/symbols/symbol_table_writer.h): appends the name for display;
 * nothing if the linkage name needs no change. context is an enum demangle_names. */
void demangle_name(void *context, struct span linkage_name, struct buf *output);

/* The linkage name without its suffixes. */
struct span demangle_strip(struct span linkage_name);

#endif

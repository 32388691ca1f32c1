/*
 * demangle: names of functions for people, from those that compilers and linkers made.
 *
 * C++ (Itanium) and Rust (legacy and v0) by libiberty, with limits on what goes in and comes out.
 * What a compiler puts behind the name of a copy that it made (.cold, .constprop.0, .isra.0,
 * .part.0, .llvm.123, …) and versions (@GLIBC_2.2.5) are left out, so that stacks merge.
 * Only for the sandbox: libiberty has met hostile names before. The door to libiberty.
 */
#ifndef DEBUGINFOD_DEMANGLE_H
#define DEBUGINFOD_DEMANGLE_H

#include "lib/base/buf.h"

enum {
    DEMANGLE_MAX_INPUT_BYTES = 16 << 10, /* longer names stay as they are */
};

/* Of what file names are: in Go's, main.cold is a function of its own. */
enum demangle_names { DEMANGLE_ANY, DEMANGLE_GO };

/* A symbol_demangle_function (lib/symbols/symbol_table_write.h): appends the name for people;
 * nothing when the linkage name is good as it is. context is an enum demangle_names. */
void demangle_name(void *context, struct span linkage_name, struct buf *output);

/* The linkage name without what was put behind it. */
struct span demangle_strip(struct span linkage_name);

#endif

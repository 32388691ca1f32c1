/*
 * mini_debuginfo: expands .gnu_debugdata, the symbol table that some distributions leave in
 * stripped files: an ELF file compressed with xz. Only mini_debuginfo.c includes liblzma.
 * https://sourceware.org/gdb/onlinedocs/gdb/MiniDebugInfo.html
 */
#ifndef DEBUGINFOD_MINI_DEBUGINFO_H
#define DEBUGINFOD_MINI_DEBUGINFO_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct buf;

enum { MINI_DEBUGINFO_MAX_BYTES = 256 << 20 };

/* Expands bytes into output, up to its maximum size. Errors: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code mini_debuginfo_expand(struct span bytes, struct buf *output,
                                    struct err *err) MUST_USE;

#endif

/*
 * symbol_names: the names of the functions and the paths of the files of a symbol table.
 *
 * Names are compressed in zstd frames of 64 KiB. The most recently used frames stay expanded, so
 * reading names in ascending order expands each frame once (about 30 us). Threads: one; any number
 * of symbol_names may share a table, which must outlive them.
 */
#ifndef LIB_SYMBOLS_SYMBOL_NAMES_H
#define LIB_SYMBOLS_SYMBOL_NAMES_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdint.h>

struct symbol_names;
struct symbol_table;

struct symbol_name {
    struct span full;    /* for display: demangled, with parameters; empty: unknown */
    struct span linkage; /* as in the binary; equal to full if the name is not mangled */
};

struct symbol_names *symbol_names_create(const struct symbol_table *table);
void symbol_names_destroy(struct symbol_names *names); /* NULL is a no-op */

/* The name is borrowed until the next call with names. The bytes are those of the binary and
 * need not be UTF-8. Errors: ERR_NOT_FOUND (no such number), ERR_CORRUPT. */
enum err_code symbol_names_function(struct symbol_names *names, uint32_t function,
                                    struct symbol_name *ret_name, struct err *err) MUST_USE;
enum err_code symbol_names_file(struct symbol_names *names, uint32_t file, struct span *ret_path,
                                struct err *err) MUST_USE;

/* Expands every frame once and checks the limits of all names. Errors: ERR_CORRUPT. */
enum err_code symbol_names_verify(const struct symbol_table *table, struct err *err) MUST_USE;

#endif

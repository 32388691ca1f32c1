/*
 * symbol_names: names of the functions and paths of the files of a symbol table.
 *
 * Names lie in zstd frames of 64 KiB; the last few that were needed are kept expanded, so names
 * asked for in order of their numbers cost one expansion per frame (some 30 us) and nothing each.
 * Threads: one; any number of symbol_names may share a table, which must outlive them.
 */
#ifndef LIB_SYMBOLS_SYMBOL_NAMES_H
#define LIB_SYMBOLS_SYMBOL_NAMES_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdint.h>

struct symbol_names;
struct symbol_table;

struct symbol_name {
    struct span full;    /* for people: demangled, with parameters; empty: nobody knows */
    struct span linkage; /* as in the binary; the same as full where nothing is mangled */
};

struct symbol_names *symbol_names_create(const struct symbol_table *table);
void symbol_names_destroy(struct symbol_names *names); /* NULL is a no-op */

/* Borrowed until the next call with names. Bytes are as in the binary: any, UTF-8 or not.
 * Handles: ERR_NOT_FOUND (no such number), ERR_CORRUPT. */
enum err_code symbol_names_function(struct symbol_names *names, uint32_t function,
                                    struct symbol_name *ret_name, struct err *err) MUST_USE;
enum err_code symbol_names_file(struct symbol_names *names, uint32_t file, struct span *ret_path,
                                struct err *err) MUST_USE;

/* Expands every name once and looks whether they are in bounds. Handles: ERR_CORRUPT. */
enum err_code symbol_names_verify(const struct symbol_table *table, struct err *err) MUST_USE;

#endif

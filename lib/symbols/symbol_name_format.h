/*
 * symbol_name_format: formats the name of a function for display.
 *
 *   full     the output of the demangler: std::vector<int>::push_back(int&&)
 *   simple   without parameters, return type and template arguments: std::vector::push_back
 *   none     as in the binary: _ZNSt6vectorIiE9push_backEOi
 *
 * The demangler ran when the table was built, in the builder's sandbox. This module only removes
 * parts of the text, in one pass. Threads: any.
 */
#ifndef LIB_SYMBOLS_SYMBOL_NAME_FORMAT_H
#define LIB_SYMBOLS_SYMBOL_NAME_FORMAT_H

#include "lib/base/span.h"

#include <stdbool.h>

struct buf;
struct symbol_name;

enum symbol_name_format_mode {
    SYMBOL_NAME_FORMAT_FULL,
    SYMBOL_NAME_FORMAT_SIMPLE,
    SYMBOL_NAME_FORMAT_NONE
};

/* Parses "full", "simple" or "none"; false for other words. */
bool symbol_name_format_parse(struct span word, enum symbol_name_format_mode *ret_mode);

/* Appends the name, never more bytes than the longer of name->full and name->linkage. Names of C
 * and Go are the same in every mode, except for the suffixes of clones, which only NONE shows. */
void symbol_name_format_append(const struct symbol_name *name, enum symbol_name_format_mode mode,
                               struct buf *output);

#endif

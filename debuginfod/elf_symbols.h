/*
 * elf_symbols: the functions of .symtab and .dynsym, for code that nothing better describes.
 *
 * Of several symbols at one address the largest is taken, then a global before a weak before a
 * local one. A symbol without a size (hand-written assembly) reaches to the next symbol, at most to
 * the end of its code; in .dynsym, where most functions are missing, it names its first byte alone.
 */
#ifndef DEBUGINFOD_ELF_SYMBOLS_H
#define DEBUGINFOD_ELF_SYMBOLS_H

#include "lib/base/err.h"

#include <stdint.h>

struct code_map;
struct elf_input;
struct symbol_table_writer;

enum { ELF_SYMBOLS_MAX_COUNT = 1 << 24 };

/*
 * Adds the functions of the section (".symtab" or ".dynsym") to the writer, which borrows their
 * names until it has finished: the section's bytes must stay. No such section is no functions.
 * Handles: those of elf_input_read, ERR_TOO_LARGE.
 */
enum err_code elf_symbols_add(struct elf_input *elf, const char *section_name,
                              const struct code_map *code, struct symbol_table_writer *writer,
                              uint32_t *ret_count, struct err *err) MUST_USE;

#endif

/*
 * elf_symbols: adds the functions of .symtab and .dynsym, for code that no better source describes.
 *
 * If several symbols have one address, the largest is used; among equally large ones a global
 * before a weak before a local one, and last one without a type (STT_NOTYPE), whatever its binding.
 * A symbol without a size (hand-written assembly) extends to the next symbol, at most to the end of
 * its code. In .dynsym, where most functions are missing, it covers only its first byte.
 */
#ifndef DEBUGINFOD_ELF_SYMBOLS_H
#define DEBUGINFOD_ELF_SYMBOLS_H

#include "lib/base/err_code.h"

#include <stdint.h>

struct code_map;
struct elf_input;
struct symbol_table_writer;

enum { ELF_SYMBOLS_MAX_COUNT = 1 << 24 };

/*
 * Adds the functions of the section (".symtab" or ".dynsym") to the writer, which borrows their
 * names until it has finished: the section's bytes must stay valid. A missing section has no
 * functions. Errors: those of elf_input_read, ERR_TOO_LARGE.
 */
enum err_code elf_symbols_add(struct elf_input *elf, const char *section_name,
                              const struct code_map *code, struct symbol_table_writer *writer,
                              uint32_t *ret_count, struct err *err) MUST_USE;

#endif

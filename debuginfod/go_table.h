/*
 * go_table: adds functions, lines and inlined calls of Go programs, from the table that the Go
 * runtime uses.
 *
 * A Go program has this table even when it is stripped: section .gopclntab, or
 * .data.rel.ro.gopclntab. Its magic number identifies one of four layouts, from Go 1.2, 1.16, 1.18
 * and 1.20. Inlined calls are outside of the table, where the runtime's module data points to; they
 * are read from Go 1.16 on, if the file contains them. Sources: src/runtime/symtab.go, symtabinl.go
 * and src/debug/gosym/pclntab.go of Go 1.2 to 1.26. Threads: one.
 */
#ifndef DEBUGINFOD_GO_TABLE_H
#define DEBUGINFOD_GO_TABLE_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct elf_input;
struct symbol_table_writer;

struct go_result {
    uint32_t function_count; /* 0: there is no table */
    uint32_t broken_functions;
    uint32_t inlined_calls;
    uint64_t code_begin; /* address range of its functions */
    uint64_t code_end;
    bool has_unknown_calls; /* the table refers to inlined calls that are not in the file */
};

/* Adds everything that can be read to the writer. Errors: those of elf_input_read,
 * ERR_INVALID (an inconsistent table), ERR_UNSUPPORTED (unknown magic number). */
enum err_code go_table_add(struct elf_input *elf, struct symbol_table_writer *writer,
                           struct go_result *ret_result, struct err *err) MUST_USE;

#endif

/*
 * go_module: finds the code and the function data of a Go program in the runtime's module data.
 *
 * Module data begins with the address of the table. It is found by searching for that address: as a
 * word of the file's data or, in a position-independent program, as the value of a relocation. If
 * there is none, the base of the code (from Go 1.18 on) is that of the table's header, else the
 * start of .text.
 */
#ifndef DEBUGINFOD_GO_MODULE_H
#define DEBUGINFOD_GO_MODULE_H

#include "debuginfod/go_header.h"

struct elf_input;

struct go_module {
    uint64_t text;          /* base of the addresses of functions; 0 before 1.18 */
    uint64_t function_data; /* "go:func.*" */
    bool has_text;
    bool has_function_data;
};

/* table_address is the address of the table in the program. */
void go_module_find(struct elf_input *elf, const struct go_header *header, uint64_t table_address,
                    struct go_module *ret_module);

#endif

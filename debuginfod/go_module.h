/*
 * go_module: where a Go program has its code and the data of its functions: the runtime's module
 * data.
 *
 * It begins with the address of the table, which is how it is found: as a word of the file's data,
 * or in a program that is placed when it starts, as what a relocation will put there.
 */
#ifndef DEBUGINFOD_GO_MODULE_H
#define DEBUGINFOD_GO_MODULE_H

#include "debuginfod/go_header.h"

struct elf_input;

struct go_module {
    uint64_t text;          /* where addresses of functions count from; 0 before 1.18 */
    uint64_t function_data; /* "go:func.*" */
    bool has_text;
    bool has_function_data;
};

/* table_address is where the program has its table. */
void go_module_find(struct elf_input *elf, const struct go_header *header, uint64_t table_address,
                    struct go_module *ret_module);

#endif

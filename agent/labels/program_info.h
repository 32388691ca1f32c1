/*
 * program_facts: what the file of a program says of how it was made. Read with pread and bounded,
 * since files are of any process. Threads: any.
 */
#ifndef AGENT_LABELS_PROGRAM_INFO_H
#define AGENT_LABELS_PROGRAM_INFO_H

#include <stdbool.h>

enum { PROGRAM_INFO_COMPILER_BYTES = 96 };

struct program_info {
    /* "go1.19.8" of Go's build information; else of .comment, what of "rustc version …", "clang
     * version …" and "GCC: (…) …" comes first in this order; "" where nothing is said. */
    char compiler[PROGRAM_INFO_COMPILER_BYTES];
    bool is_static;   /* it names no interpreter */
    bool is_stripped; /* it has no .symtab */
};

/* All empty where fd is no 64-bit little-endian ELF file. */
void program_info_read(int fd, struct program_info *ret_facts);

#endif

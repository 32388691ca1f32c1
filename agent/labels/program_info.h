/*
 * program_info: how a program was built, from its file. The file is untrusted: it is read with
 * pread, and sizes are bounded. Threads: any.
 */
#ifndef AGENT_LABELS_PROGRAM_INFO_H
#define AGENT_LABELS_PROGRAM_INFO_H

#include <stdbool.h>

enum { PROGRAM_INFO_COMPILER_BYTES = 96 };

struct program_info {
    /* "go1.19.8" from Go's build information. Otherwise the text in .comment that begins with
     * "rustc version", else "clang version", else "GCC:". "": not known. */
    char compiler[PROGRAM_INFO_COMPILER_BYTES];
    bool is_static;   /* no dynamic linker (PT_INTERP) */
    bool is_stripped; /* no .symtab */
};

/* All members are empty if fd is not a 64-bit little-endian ELF file. */
void program_info_read(int fd, struct program_info *ret_facts);

#endif

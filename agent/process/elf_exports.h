/*
 * elf_exports: where a program or shared library has a symbol that it exports, by name.
 *
 * Looked up by the file's own hash table (DT_GNU_HASH), as the dynamic linker does: a few small
 * reads, and mostly one where there is no such symbol. Files are of any process: every number is
 * checked, searches are bounded, and what makes no sense has no symbols. Threads: any.
 */
#ifndef AGENT_PROCESS_ELF_EXPORTS_H
#define AGENT_PROCESS_ELF_EXPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct elf_exports {
    int fd;
    const struct elf_file *file;
    uint64_t symbols; /* offsets in the file */
    uint64_t strings;
    uint64_t hash;
    uint32_t bucket_count;
    uint32_t first_hashed;
    uint32_t bloom_words;
    uint32_t bloom_shift;
};

struct elf_symbol {
    uint64_t address; /* as the file has it */
    uint64_t bytes;
};

/* Borrows fd and file. False when it exports nothing in that way. */
bool elf_exports_init(struct elf_exports *symbols, int fd, const struct elf_file *file);
bool elf_exports_find(const struct elf_exports *symbols, const char *name,
                      struct elf_symbol *ret_symbol);
/* Bytes that the file has for an address; false when it has none. */
bool elf_exports_read(const struct elf_exports *symbols, uint64_t address, void *to, size_t size);

#endif

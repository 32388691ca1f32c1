/*
 * elf_exports: finds exported symbols of a program or shared library by name.
 *
 * Uses the file's hash table (DT_GNU_HASH) as the dynamic linker does: a few small reads per
 * lookup, and usually a single one for a symbol that does not exist. Files are untrusted: every
 * number is checked, searches are bounded, and a damaged table has no symbols. Threads: any.
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
    /* Offsets in the file of DT_SYMTAB, DT_STRTAB and DT_GNU_HASH. */
    uint64_t symbols;
    uint64_t strings;
    uint64_t hash;
    /* The head of the hash table. */
    uint32_t bucket_count;
    uint32_t first_hashed;
    uint32_t bloom_words;
    uint32_t bloom_shift;
};

struct elf_symbol {
    uint64_t address; /* ELF address */
    uint64_t bytes;
};

/* Borrows fd and file. False: the file has no such hash table. */
bool elf_exports_init(struct elf_exports *symbols, int fd, const struct elf_file *file);
/* False: the file does not export name, or name has more than 63 bytes. */
bool elf_exports_find(const struct elf_exports *symbols, const char *name,
                      struct elf_symbol *ret_symbol);
/* Reads size bytes at an ELF address from the file; false: it does not contain them. */
bool elf_exports_read(const struct elf_exports *symbols, uint64_t address, void *to, size_t size);

#endif

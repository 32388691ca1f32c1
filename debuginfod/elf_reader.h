/*
 * elf_reader: reads the structures of an ELF file with libelf: header, program headers, sections,
 * symbols, relocations and the headers of compressed sections.
 *
 * Only elf_reader.c includes libelf. libelf gets the bytes instead of a descriptor (elf_memory), so
 * it makes no system calls except for memory, and all its results point into the file or into its
 * own memory. It does not inflate sections here: version 0.188 returns nothing and no error for
 * zstd, its zlib takes twice as long as libdeflate, and it would write to the mapped headers. This
 * module also rejects what libelf accepts but cannot be used, such as tables outside of the file.
 * Threads: an object belongs to one thread.
 */
#ifndef DEBUGINFOD_ELF_READER_H
#define DEBUGINFOD_ELF_READER_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdint.h>

struct elf_input;
struct elf_section;

struct elf_symbol {
    uint32_t name; /* offset in the section that the table links to */
    uint8_t binding;
    uint8_t type;
    uint16_t section;
    uint64_t value;
    uint64_t size;
};

struct elf_relocation {
    uint64_t offset;
    uint32_t symbol;
    uint32_t type;
    int64_t addend;
    bool has_addend; /* otherwise the addend is stored where the value is written */
};

struct elf_packed {
    uint32_t method; /* ELFCOMPRESS_* */
    uint64_t flat_bytes;
    struct span bytes;
};

/*
 * Fills in header, sections and program headers of elf, whose arena and file are set. Errors:
 * ERR_INVALID, ERR_UNSUPPORTED (big-endian), ERR_TOO_LARGE. Call elf_reader_close after any result.
 */
enum err_code elf_reader_open(struct elf_input *elf, struct err *err) MUST_USE;
void elf_reader_close(struct elf_input *elf); /* a no-op if it was never opened */

/* Reads the header of a section with SHF_COMPRESSED. Returns false when it is damaged. */
bool elf_reader_packed(const struct elf_input *elf, const struct elf_section *section,
                       struct elf_packed *ret_packed);

/* The symbols or relocations of a section, to be read one by one. */
struct elf_entries {
    void *data; /* libelf's */
    size_t count;
    bool has_addends;
};

/* Empty when the section has no such entries. Errors: ERR_UNSUPPORTED: the table is compressed,
 * which no tool does. */
enum err_code elf_reader_entries(const struct elf_input *elf, const struct elf_section *section,
                                 struct elf_entries *ret_entries, struct err *err) MUST_USE;
/* Return false when the number is out of bounds or the entries are of another kind. */
bool elf_entries_symbol(const struct elf_entries *entries, size_t number,
                        struct elf_symbol *ret_symbol);
bool elf_entries_relocation(const struct elf_entries *entries, size_t number,
                            struct elf_relocation *ret_relocation);

#endif

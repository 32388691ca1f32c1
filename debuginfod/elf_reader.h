/*
 * elf_reader: what libelf reads of an ELF file: header, program headers, sections, symbols,
 * relocations and the headers of compressed sections.
 *
 * The door to libelf, which gets the bytes and not a descriptor (elf_memory): it makes no system
 * call but for memory, and everything it gives points into the file or into memory of its own. It
 * does not inflate: 0.188 answers zstd with nothing and no error, its zlib takes twice as
 * long as ours, and it would write to the mapped headers. What it lets pass and would be of no use,
 * such as tables outside of the file, is checked here. Threads: an object belongs to one thread.
 */
#ifndef DEBUGINFOD_ELF_READER_H
#define DEBUGINFOD_ELF_READER_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

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
    bool has_addend; /* else it stands where the value goes */
};

struct elf_packed {
    uint32_t method; /* ELFCOMPRESS_* */
    uint64_t flat_bytes;
    struct span bytes;
};

/*
 * Fills in header, sections and program headers of elf, whose arena and file are set. Handles:
 * ERR_INVALID, ERR_UNSUPPORTED (big-endian), ERR_TOO_LARGE. After any outcome elf_reader_close.
 */
enum err_code elf_reader_open(struct elf_input *elf, struct err *err) MUST_USE;
void elf_reader_close(struct elf_input *elf); /* what was never opened is a no-op */

/* Of a section with SHF_COMPRESSED. False: its header is damaged. */
bool elf_reader_packed(const struct elf_input *elf, const struct elf_section *section,
                       struct elf_packed *ret_packed);

/* The symbols or relocations of a section, to be read one by one. */
struct elf_entries {
    void *data; /* libelf's */
    size_t count;
    bool has_addends;
};

/* None where the section has no such entries. Handles: ERR_UNSUPPORTED: the table is compressed,
 * which no tool does. */
enum err_code elf_reader_entries(const struct elf_input *elf, const struct elf_section *section,
                                 struct elf_entries *ret_entries, struct err *err) MUST_USE;
/* False: there is none of that number, or they are none of that kind. */
bool elf_entries_symbol(const struct elf_entries *entries, size_t number,
                        struct elf_symbol *ret_symbol);
bool elf_entries_relocation(const struct elf_entries *entries, size_t number,
                            struct elf_relocation *ret_relocation);

#endif

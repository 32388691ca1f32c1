/*
 * elf_input: an ELF file, its sections (inflated when they are asked for), program headers and id.
 *
 * The container is read by libelf (elf_reader.h). Nothing in the file is believed: every offset and
 * count is checked against the file, and there are limits on sections, headers and on what all
 * compressed sections together claim to hold. Reads 32 and 64 bit, little-endian; compressed
 * sections in zlib, zstd and the old `.zdebug_*`.
 * A relocatable file (a kernel module, an object) gets addresses: its allocated sections one after
 * the other from 0, each aligned, as elfutils and perf do it; see elf_relocate.h for the rest.
 * Threads: an object belongs to one thread. The file's bytes must outlive it.
 */
#ifndef DEBUGINFOD_ELF_INPUT_H
#define DEBUGINFOD_ELF_INPUT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdint.h>

struct Elf;
struct Elf_Scn;
struct arena;

enum {
    ELF_INPUT_MAX_SECTIONS = 1 << 20,
    ELF_INPUT_MAX_PROGRAM_HEADERS = 4096,
    ELF_INPUT_MAX_NOTES = 1024, /* of one segment or section */
    ELF_INPUT_MAX_ID_BYTES = 128,
};
/* What compressed sections may hold together. */
#define ELF_INPUT_MAX_INFLATED_BYTES (UINT64_C(4) << 30)

enum elf_id_kind {
    ELF_ID_NONE,
    ELF_ID_GNU,  /* note "GNU", type 3: bytes */
    ELF_ID_GO,   /* note "Go", type 4: text with slashes */
    ELF_ID_TEXT, /* XXH64 of the bytes of .text, big-endian */
};

struct elf_id {
    enum elf_id_kind kind;
    uint8_t bytes[ELF_INPUT_MAX_ID_BYTES];
    size_t size;
};

struct elf_section {
    struct Elf_Scn *handle; /* libelf's */
    struct span name;
    uint32_t type;
    uint64_t flags;
    uint64_t address;
    uint64_t memory_bytes; /* as the header says, also of a section without bytes in the file */
    uint64_t alignment;
    uint32_t link;
    uint32_t info;
    struct span stored; /* as in the file; empty for SHT_NOBITS */
    struct span flat;   /* once read */
    void *owned;        /* memory behind flat, where it had to be inflated or changed */
};

struct elf_program_header {
    uint32_t type;
    uint32_t flags;
    uint64_t file_offset;
    uint64_t file_bytes;
    uint64_t address;
    uint64_t memory_bytes;
    uint64_t alignment;
};

struct elf_input {
    struct Elf *handle; /* libelf's */
    struct arena *arena;
    struct span file;
    bool is_64_bit;
    bool is_mapped; /* file is a mapping of a file: pages read once may be given back */
    uint16_t type;  /* ET_* */
    uint16_t machine;
    struct elf_section *sections;
    uint32_t section_count;
    struct elf_program_header *program_headers;
    uint32_t program_header_count;
    struct elf_id id;
};

/*
 * Reads headers and id. Sections are inflated later, one by one. elf_input_close frees what
 * is not the arena's. Handles: ERR_INVALID (no ELF file, or one that
 * contradicts itself), ERR_UNSUPPORTED (big-endian), ERR_TOO_LARGE.
 */
enum err_code elf_input_open(struct arena *arena, struct span file, bool is_mapped,
                             struct elf_input **ret_elf, struct err *err) MUST_USE;
void elf_input_close(struct elf_input *elf); /* NULL is a no-op */

/* The section of that name, ".debug_x" also where it is called ".zdebug_x"; NULL: there is none, or
 * it has no bytes in this file. */
struct elf_section *elf_input_find(struct elf_input *elf, const char *name);
/* As elf_input_find by the whole name, also a section without bytes. */
const struct elf_section *elf_input_named(const struct elf_input *elf, const char *name);
/* What the program has at an address, to the end of the section, or where there are no sections of
 * the segment; empty when the file does not have it. */
struct span elf_input_at(const struct elf_input *elf, uint64_t address);
/* Its bytes, inflated if need be, valid until elf_input_forget. Handles: ERR_INVALID,
 * ERR_UNSUPPORTED (another compression). */
enum err_code elf_input_read(struct elf_input *elf, struct elf_section *section,
                             struct span *ret_bytes, struct err *err) MUST_USE;
/* As both above: empty bytes when there is no such section. */
enum err_code elf_input_read_name(struct elf_input *elf, const char *name, struct span *ret_bytes,
                                  struct err *err) MUST_USE;
/* Frees what was inflated; section may be NULL. */
void elf_input_forget(struct elf_section *section);

#endif

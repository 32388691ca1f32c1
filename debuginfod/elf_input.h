/*
 * elf_input: an ELF file, its sections (inflated on demand), program headers and id.
 *
 * libelf reads the container (elf_reader.h). The file is untrusted: every offset and count is
 * checked against its size, and there are limits on the numbers of sections and headers and on the
 * total size that compressed sections claim. Reads 32 and 64 bit, little-endian; compressed
 * sections in zlib, zstd and the old `.zdebug_*` format. In a relocatable file (a kernel module, an
 * object) the allocated sections get consecutive addresses from 0, each aligned, as in elfutils and
 * perf; elf_relocate.h does the rest. Threads: an object belongs to one thread. The file's bytes
 * must outlive it.
 */
#ifndef DEBUGINFOD_ELF_INPUT_H
#define DEBUGINFOD_ELF_INPUT_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

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
/* The maximum total size of all inflated sections. */
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
    /* according to the header, also for a section without bytes in the file */
    uint64_t memory_bytes;
    uint64_t alignment;
    uint32_t link;
    uint32_t info;
    struct span stored; /* as in the file; empty for SHT_NOBITS */
    struct span flat;   /* set once the section was read */
    void *owned;        /* memory of flat, if it was inflated or modified */
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
    bool is_mapped; /* file is a mapping: pages that were read once may be released */
    uint16_t type;  /* ET_* */
    uint16_t machine;
    struct elf_section *sections;
    uint32_t section_count;
    struct elf_program_header *program_headers;
    uint32_t program_header_count;
    struct elf_id id;
};

/*
 * Reads headers and id. Sections are inflated later, one by one. elf_input_close frees everything
 * that is not in the arena. Errors: ERR_INVALID (not an ELF file, or inconsistent),
 * ERR_UNSUPPORTED (big-endian), ERR_TOO_LARGE.
 */
enum err_code elf_input_open(struct arena *arena, struct span file, bool is_mapped,
                             struct elf_input **ret_elf, struct err *err) MUST_USE;
void elf_input_close(struct elf_input *elf); /* NULL is a no-op */

/* Finds a section by name; ".debug_x" also finds ".zdebug_x". NULL: there is none, or it has no
 * bytes in this file. */
struct elf_section *elf_input_find(struct elf_input *elf, const char *name);
/* Finds a section by its exact name, including sections without bytes. */
const struct elf_section *elf_input_named(const struct elf_input *elf, const char *name);
/* The bytes that the program has at an address, up to the end of the section, or of the segment
 * if there are no sections; empty when they are not in the file. */
struct span elf_input_at(const struct elf_input *elf, uint64_t address);
/* The bytes of a section, inflated if necessary, valid until elf_input_forget. Errors:
 * ERR_INVALID, ERR_UNSUPPORTED (unknown compression). */
enum err_code elf_input_read(struct elf_input *elf, struct elf_section *section,
                             struct span *ret_bytes, struct err *err) MUST_USE;
/* Finds and reads a section; empty when there is no such section. */
enum err_code elf_input_read_name(struct elf_input *elf, const char *name, struct span *ret_bytes,
                                  struct err *err) MUST_USE;
/* Frees the inflated bytes; section may be NULL. */
void elf_input_forget(struct elf_section *section);

#endif

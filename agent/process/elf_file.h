/*
 * elf_file: the loaded segments and the build id of an ELF file.
 *
 * Reads headers and notes only, with pread, so that a file that is truncated meanwhile is an error
 * rather than a signal. Files are untrusted: every number is checked. 64-bit little-endian files
 * only. Threads: any.
 */
#ifndef AGENT_PROCESS_ELF_FILE_H
#define AGENT_PROCESS_ELF_FILE_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

enum { ELF_FILE_SEGMENTS_MAX = 16, ELF_FILE_BUILD_ID_MAX_BYTES = 128 };

/* A loadable segment (PT_LOAD): bytes at offset of the file are loaded at address. */
struct elf_file_segment {
    uint64_t address;
    uint64_t offset;
    uint64_t bytes; /* in the file */
    bool is_code;   /* executable */
};

struct elf_file {
    struct elf_file_segment segments[ELF_FILE_SEGMENTS_MAX];
    uint32_t segment_count;
    uint8_t build_id[ELF_FILE_BUILD_ID_MAX_BYTES];
    uint32_t build_id_bytes; /* 0: it has none */
    bool is_go_id;           /* build_id is the text of Go's note; there is no GNU note */
};

/* fd is borrowed; name is for messages. Errors: ERR_INVALID (not an ELF file, or damaged),
 * ERR_UNSUPPORTED (32-bit or big-endian), ERR_IO. */
enum err_code elf_file_read(int fd, const char *name, struct elf_file *ret_file,
                            struct err *err) MUST_USE;

/* The ELF address of the byte at offset of an executable mapping; false: no segment contains it.
 * Mappings are whole pages, so a mapping may show bytes beside its code segment. They count as part
 * of that segment, even if they belong to another one too (lld lets segments share a page).
 */
bool elf_file_address(const struct elf_file *file, uint64_t offset, uint64_t *ret_address);

#endif

/*
 * elf_file: what the agent has to know of a mapped file before its tables are built: which
 * addresses the parts of the file have, and its build id.
 *
 * Only headers and notes are read, by pread, so that a file that is cut short meanwhile is an error
 * and no signal. Files are of any process: every number is checked. 64-bit little-endian files
 * only. Threads: any.
 */
#ifndef AGENT_PROCESS_ELF_FILE_H
#define AGENT_PROCESS_ELF_FILE_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { ELF_FILE_SEGMENTS_MAX = 16, ELF_FILE_BUILD_ID_MAX_BYTES = 128 };

/* A part of the file that is loaded: bytes of the file from offset on have addresses from address
 * on. */
struct elf_file_segment {
    uint64_t address;
    uint64_t offset;
    uint64_t bytes; /* of the file */
    bool is_code;   /* it is mapped executable */
};

struct elf_file {
    struct elf_file_segment segments[ELF_FILE_SEGMENTS_MAX];
    uint32_t segment_count;
    uint8_t build_id[ELF_FILE_BUILD_ID_MAX_BYTES];
    uint32_t build_id_bytes; /* 0: it has none */
    bool is_go_id;           /* the text of Go's own note, where there is no GNU one */
};

/* Handles: ERR_INVALID (no ELF file, or a damaged one), ERR_UNSUPPORTED (32 bits, big-endian),
 * ERR_IO. name is for messages. */
enum err_code elf_file_read(int fd, const char *name, struct elf_file *ret_file,
                            struct err *err) MUST_USE;

/* The address in the file's own terms of the byte at offset of an executable mapping; false when no
 * segment has it. Mappings are whole pages: what such a mapping shows beside a segment of code
 * counts as that segment's, be it another segment's, too (lld lets them share a page of the file).
 */
bool elf_file_address(const struct elf_file *file, uint64_t offset, uint64_t *ret_address);

#endif

/*
 * elf_frames: where an ELF file has its call frame information and its code.
 *
 * Headers are read with pread and bounded memory. The file is untrusted and may change while it is
 * read. It is never mapped, so that a file that is truncated meanwhile causes an error rather than
 * SIGBUS. Without section headers the program headers are used (PT_GNU_EH_FRAME). Threads: any.
 */
#ifndef AGENT_UNWIND_ELF_FRAMES_H
#define AGENT_UNWIND_ELF_FRAMES_H

#include "lib/base/err_code.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ELF_FRAMES_CODE_MAX = 8, /* executable segments; further ones are merged with others */
};

/* A part of the file and its address in memory; bytes 0: there is none. */
struct elf_extent {
    uint64_t address;
    uint64_t offset;
    uint64_t bytes;
};

struct elf_frames {
    int fd;           /* borrowed */
    const char *path; /* borrowed, for messages */
    uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
    uint64_t file_bytes;
    struct elf_extent eh_frame;
    struct elf_extent eh_frame_hdr;
    struct elf_extent debug_frame;
    struct elf_extent go_table; /* Go's pclntab */
    uint64_t text_address;      /* address of .text; 0: there is none */
    uint32_t code_count;
    struct elf_extent code[ELF_FRAMES_CODE_MAX]; /* ascending */
};

/*
 * Reads the headers of the file behind fd.
 * Errors: ERR_INVALID (no ELF file, or headers that contradict each other), ERR_UNSUPPORTED (not
 * 64 bits, little-endian, x86-64 or arm64, or a file that cannot be run), ERR_IO.
 */
enum err_code elf_frames_open(int fd, const char *path, struct elf_frames *ret_frames,
                              struct err *err) MUST_USE;

#endif

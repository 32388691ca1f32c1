/*
 * elf_frames: where an ELF file has its call frame information and its code.
 *
 * Reads headers with pread and bounded memory; the file may be hostile and may change while it is
 * read: it is never mapped, so that one that is cut short costs an error, not a SIGBUS. Section
 * headers are used where they are, else what the program headers say (PT_GNU_EH_FRAME).
 */
#ifndef AGENT_UNWIND_ELF_FRAMES_H
#define AGENT_UNWIND_ELF_FRAMES_H

#include "lib/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ELF_FRAMES_CODE_MAX = 8, /* executable segments that are told apart; more are merged */
};

/* Bytes of the file and where they are in memory; bytes is 0 when there are none. */
struct elf_extent {
    uint64_t address;
    uint64_t offset;
    uint64_t bytes;
};

struct elf_frames {
    int fd;           /* the caller's */
    const char *path; /* the caller's, for messages */
    uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
    uint64_t file_bytes;
    struct elf_extent eh_frame;
    struct elf_extent eh_frame_hdr;
    struct elf_extent debug_frame;
    struct elf_extent go_table; /* Go's pclntab */
    uint64_t text_address;      /* of .text; 0: there is none */
    uint32_t code_count;
    struct elf_extent code[ELF_FRAMES_CODE_MAX]; /* ascending; offset is of the file */
};

/*
 * Reads the headers of the file behind fd.
 * Handles: ERR_INVALID (no ELF file, or headers that contradict each other), ERR_UNSUPPORTED (not
 * 64 bits, little-endian, x86-64 or arm64, or a file that cannot be run), ERR_IO.
 */
enum err_code elf_frames_open(int fd, const char *path, struct elf_frames *ret_frames,
                              struct err *err) MUST_USE;

#endif

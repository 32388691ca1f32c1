/*
 * eh_frame: reads .eh_frame or .debug_frame of an ELF file, function by function, ascending.
 *
 * .eh_frame is read in the order of its index, .eh_frame_hdr, so that nothing has to be sorted or
 * kept, and the memory is two buffers with parts of the file. Without a usable index, and for
 * .debug_frame, functions are collected and sorted first, at 16 bytes each. A malformed function is
 * left out and counted. Threads: one. Formats: LSB 5.0, section 10.6; DWARF 5, section 6.4.
 */
#ifndef AGENT_UNWIND_EH_FRAME_H
#define AGENT_UNWIND_EH_FRAME_H

#include "agent/process/read_budget.h"
#include "agent/unwind/cfi_program.h"
#include "agent/unwind/elf_frames.h"

/* Why functions, or parts of them, were left out. */
enum eh_frame_problem {
    EH_FRAME_BAD_INDEX,        /* .eh_frame_hdr is missing, unsorted or of an unknown form */
    EH_FRAME_BAD_RECORD,       /* a length or reference is out of bounds */
    EH_FRAME_BAD_CIE,          /* a CIE cannot be read; its functions are left out */
    EH_FRAME_BAD_POINTER,      /* an address has an unknown encoding or differs from the index */
    EH_FRAME_BAD_INSTRUCTIONS, /* the instructions of a function are malformed from some address on
                                */
    EH_FRAME_OUTSIDE_CODE,     /* a function is in no executable segment */
    EH_FRAME_TOO_MUCH,         /* records overlap again and again, are too many, or take more than
                                * the budget: the rest was not read */
    EH_FRAME_PROBLEM_COUNT
};

struct eh_frame_facts {
    bool is_debug_frame;
    uint64_t section_bytes;
    uint32_t function_count;
    uint32_t problems[EH_FRAME_PROBLEM_COUNT];
};

/* Receives the addresses of each function, then its rows; ascending, without overlap. */
struct eh_frame_sink {
    void (*function)(void *context, uint64_t start, uint64_t end);
    cfi_row_function *row;
    void *context;
    struct read_budget *budget; /* borrowed; NULL: no limit */
};

/* Errors: ERR_NOT_FOUND (there is no such section, or no function in it), ERR_TOO_LARGE. */
enum err_code eh_frame_read(const struct elf_frames *frames, const struct eh_frame_sink *sink,
                            struct eh_frame_facts *ret_facts, struct err *err) MUST_USE;

/* "bad-index", … */
const char *eh_frame_problem_name(enum eh_frame_problem problem);

#endif

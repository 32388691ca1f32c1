/*
 * go_frames: where functions of a Go program have no frame, from the table by which Go's own
 * runtime unwinds (pclntab), which stripped programs contain too.
 *
 * Go keeps frame pointers, by which callers are found. At the start and the end of a function, and
 * in functions without a frame, the frame pointer still belongs to the caller. Unwinding by frame
 * pointers would then skip the caller. At these addresses the return address is at the stack
 * pointer (x86-64) or in the link register (arm64).
 *
 * For each address the table contains how much of the stack the function has used. The table is
 * read with pread and bounded memory. The file is untrusted and may change while it is read: after
 * a limit on the bytes read, the rest is unwound by frame pointers. Formats: Go 1.16 and later,
 * src/internal/abi/symtab.go, src/runtime/symtab.go and src/debug/gosym/pclntab.go. Threads: one.
 */
#ifndef AGENT_UNWIND_GO_FRAMES_H
#define AGENT_UNWIND_GO_FRAMES_H

#include "agent/process/file_window.h"
#include "agent/unwind/eh_frame.h"

struct go_frames {
    const struct elf_frames *frames; /* borrowed */
    struct file_window list;         /* functab: for each function its address and an offset */
    struct file_window functions;    /* struct _func of each function, at its offset in functab */
    struct file_window programs;     /* tables of stack sizes (pcsp) */
    uint64_t list_offset;            /* where functab begins in the file; base of its offsets */
    uint64_t programs_offset;
    uint64_t text; /* base of the addresses in functab; 0: they are absolute (before Go 1.18) */
    uint64_t count;
    uint64_t next;
    uint64_t work_left;  /* bytes that may still be read */
    uint64_t read_bytes; /* bytes that the windows have read and that were taken from work_left */
    uint64_t cost_bytes; /* cost of the windows that the budget has been charged for */
    uint8_t quantum;
    bool has_short_addresses; /* from Go 1.18 on */
    bool is_open;
};

/* False: the file has no such table, or one of an unknown format; go_frames_until() then does
 * nothing. The caller calls go_frames_close() in any case. */
bool go_frames_open(const struct elf_frames *frames, struct go_frames *ret_go);
void go_frames_close(struct go_frames *go);

/*
 * Passes the next functions that begin before limit to sink, ascending, except those that begin
 * before from or end after limit. Rows are UNWIND_CFA_LEAF where there is no frame, otherwise
 * UNWIND_CFA_NONE.
 */
void go_frames_until(struct go_frames *go, uint64_t from, uint64_t limit,
                     const struct eh_frame_sink *sink);

#endif

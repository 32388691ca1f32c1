/*
 * go_frames: where functions of a Go program have no frame, by the table that Go's own runtime
 * unwinds by (pclntab), which stripped programs have, too.
 *
 * Go keeps frame pointers, so its callers are found by them. A function that has no frame, or not
 * yet or no more, hides its caller: the frame pointer is the caller's. There the return address is
 * at the stack pointer (x86-64), or in the link register (arm64).
 *
 * The table gives each address how much of the stack its function has taken, as pairs of a change
 * and a distance. Read with pread and bounded memory; the file may be hostile and may change: what
 * is read again and again, a page for each function, ends, and the rest is walked by frame
 * pointers. Forms of Go 1.16 and later: src/internal/abi/symtab.go, src/runtime/symtab.go and
 * src/debug/gosym/pclntab.go of Go. Threads: one.
 */
#ifndef AGENT_UNWIND_GO_FRAMES_H
#define AGENT_UNWIND_GO_FRAMES_H

#include "agent/process/file_window.h"
#include "agent/unwind/eh_frame.h"

struct go_frames {
    const struct elf_frames *frames; /* borrowed */
    struct file_window list;         /* of functions: an address and a place each */
    struct file_window functions;    /* at their places */
    struct file_window programs;
    uint64_t list_offset; /* in the file; places count from there */
    uint64_t programs_offset;
    uint64_t text; /* addresses count from there; 0 before Go 1.18, where they are whole */
    uint64_t count;
    uint64_t next;
    uint64_t work_left;  /* bytes that are read: many functions may share a program, or lie apart */
    uint64_t read_bytes; /* of the windows, that were taken from it */
    uint64_t cost_bytes; /* of the windows, of which the budget was told */
    uint8_t quantum;
    bool has_short_addresses; /* from Go 1.18 on */
    bool is_open;
};

/* False where the file has no such table, or of a form that is not known: it has no functions
 * then. go_frames_close() in any case. */
bool go_frames_open(const struct elf_frames *frames, struct go_frames *ret_go);
void go_frames_close(struct go_frames *go);

/*
 * Gives the functions that begin before limit, ascending, none of which begins before from or ends
 * after limit. Rows are of UNWIND_CFA_LEAF where there is no frame, else of UNWIND_CFA_NONE.
 */
void go_frames_until(struct go_frames *go, uint64_t from, uint64_t limit,
                     const struct eh_frame_sink *sink);

#endif

/*
 * stack_merge: merges the native frames and the interpreted frames of a stack into one.
 *
 * Each group of interpreted frames replaces the native frame that runs it
 * (bpf/interpreter_format.h). If the kernel program did not find that frame by the group's anchor,
 * it is the next native frame in the interpreter's C function. The innermost such frame is skipped
 * if it has no interpreted frame, because its call has just begun or is about to return. Groups for
 * which no native frame is left are placed after all other frames, as their callers.
 * Threads: any.
 */
#ifndef AGENT_INTERPRETER_STACK_MERGE_H
#define AGENT_INTERPRETER_STACK_MERGE_H

#include "bpf/interpreter_format.h"

#include <stdbool.h>
#include <stdint.h>

/* Set in an item that is the index of an interpreted frame; otherwise it is that of a native one.
 */
#define STACK_MERGE_INTERPRETED (UINT32_C(1) << 31)

struct stack_merge {
    uint32_t native_count;
    const struct interpreted_frame *frames;
    uint32_t frame_count;
    bool (*is_call)(const void *context, uint32_t native); /* in the C function that runs frames */
    const void *context;
};

/* Fills items, leaf first, and returns their number. items has space for native_count +
 * frame_count. */
uint32_t stack_merge_frames(const struct stack_merge *merge, uint32_t *items);

#endif

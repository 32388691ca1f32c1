/*
 * stack_merge: merges the native frames and the interpreted frames of a stack into one.
 *
 * Each group of interpreted frames replaces the native frame that runs it
 * (bpf/interpreter_format.h). If the kernel did not find that frame by the group's anchor, it is
 * the next native frame in the interpreter's C function, except an innermost one that has no
 * interpreted frame yet or any more. Groups that are left at the end are placed above all frames.
 * Threads: any.
 */
#ifndef AGENT_INTERPRETER_STACK_MERGE_H
#define AGENT_INTERPRETER_STACK_MERGE_H

#include "bpf/interpreter_format.h"

#include <stdbool.h>
#include <stdint.h>

/* In an item: the index is that of an interpreted frame, else of one of the machine's. */
#define STACK_MERGE_INTERPRETED (UINT32_C(1) << 31)

struct stack_merge {
    uint32_t native_count;
    const struct interpreted_frame *frames;
    uint32_t frame_count;
    bool (*is_call)(const void *context, uint32_t native);
    const void *context;
};

/* items has room for native_count + frame_count; returns how many there are. */
uint32_t stack_merge_frames(const struct stack_merge *merge, uint32_t *items);

#endif

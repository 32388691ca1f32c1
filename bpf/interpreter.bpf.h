/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * interpreter.bpf: reads the frames of an interpreter before the native stack is unwound, and finds
 * the native frame that each group of them replaces during unwinding.
 *
 * All memory is read from the interrupted thread, so it does not change meanwhile. It is untrusted:
 * reads through pointers may fail, offsets are masked, and user space checks the code of the
 * frames.
 *
 * bpf/interpreter_format.h explains the terms group, anchor, record and STACKED.
 */
#ifndef BPF_INTERPRETER_BPF_H
#define BPF_INTERPRETER_BPF_H

#include "bpf/interpreter_format.h"

struct interpreter_reader {
    struct interpreter_layout layout;
    __u64 frame;  /* address of the next frame to read */
    __u64 limit;  /* STACKED: end of the thread's frames */
    __u64 record; /* the record of the call that runs frame; 0: none */
    __u32 count;
    __u32 group_count;
    __u32 next_group;      /* the first group whose native frame was not found yet */
    __u32 is_group_filled; /* the current group has frames */
    __u64 anchor[INTERPRETED_GROUPS_MAX];
    __u16 last[INTERPRETED_GROUPS_MAX]; /* index of the group's last frame */
    __u8 piece[INTERPRETER_PIECE_BYTES + 16];
    struct interpreted_frame frames[INTERPRETED_FRAMES_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, SCRATCH_COUNT);
    __type(key, __u32);
    __type(value, struct interpreter_reader);
} interpreter_readers SEC(".maps");

static __always_inline struct interpreter_reader *interpreter_of(__u32 slot)
{
    return bpf_map_lookup_elem(&interpreter_readers, &slot);
}

static __always_inline int interpreter_pointer(__u64 address, __u64 *ret_value)
{
    return (int)bpf_probe_read_user(ret_value, sizeof(*ret_value), (const void *)address);
}

static __always_inline __u64 interpreter_word(const struct interpreter_reader *reader, __u16 offset)
{
    return *(const __u64 *)(reader->piece + (offset & (INTERPRETER_PIECE_BYTES - 1)));
}

/* Reads bytes at address into reader->piece; false: they cannot be read. */
static __always_inline int interpreter_read_piece(struct interpreter_reader *reader, __u64 address,
                                                  __u16 bytes)
{
    __u64 size = bytes & (INTERPRETER_PIECE_BYTES - 1);
    return size && bpf_probe_read_user(reader->piece, (__u32)size, (const void *)address) == 0;
}

/* The checksum of a code object; 0: it cannot be read. */
static __always_inline __u32 interpreter_read_check(struct interpreter_reader *reader, __u64 code)
{
    const struct interpreter_layout *layout = &reader->layout;
    __u64 body = code;
    if (layout->code_body && interpreter_pointer(code + layout->code_body, &body))
        return 0;
    if (!interpreter_read_piece(reader, body + layout->code_start, layout->code_bytes))
        return 0;
    return interpreter_check(interpreter_word(reader, layout->code_words[0]),
                             interpreter_word(reader, layout->code_words[1]),
                             interpreter_word(reader, layout->code_words[2]));
}

/* Ends the current group, unless it has no frames. A group beyond INTERPRETED_GROUPS_MAX keeps its
 * frames, but its native frame is not searched. */
static __always_inline void interpreter_end_group(struct interpreter_reader *reader, __u64 anchor)
{
    __u32 last = reader->count - 1;
    __u32 group = reader->group_count;
    if (!reader->is_group_filled || last >= INTERPRETED_FRAMES_MAX)
        return;
    reader->frames[last].flags = INTERPRETED_LAST;
    reader->is_group_filled = 0;
    if (group < INTERPRETED_GROUPS_MAX) {
        reader->anchor[group] = anchor;
        reader->last[group] = (__u16)last;
        reader->group_count = group + 1;
    }
}

static __always_inline void interpreter_add(struct interpreter_reader *reader, __u64 code,
                                            __u64 position)
{
    const __u32 count = reader->count;
    struct interpreted_frame *found = &reader->frames[count & (INTERPRETED_FRAMES_MAX - 1)];
    found->code = code;
    found->position = position;
    found->check = interpreter_read_check(reader, code);
    found->native = INTERPRETED_NOWHERE;
    found->flags = 0;
    reader->count = count + 1;
    reader->is_group_filled = 1;
}

/* Reads one frame of a thread whose frames are contiguous; 1 ends the loop. */
static __always_inline long interpreter_step_stacked(struct interpreter_reader *reader)
{
    const struct interpreter_layout *layout = &reader->layout;
    const __u64 frame = reader->frame;
    __u64 bits;
    if (frame >= reader->limit || reader->count >= INTERPRETED_FRAMES_MAX ||
        !interpreter_read_piece(reader, frame, layout->frame_bytes))
        return 1;
    const __u64 code = interpreter_word(reader, layout->frame_code);
    const __u64 position = interpreter_word(reader, layout->frame_position);
    const __u64 environment = interpreter_word(reader, layout->frame_environment);
    reader->frame = frame + layout->frame_previous;
    if (interpreter_pointer(environment, &bits))
        return 1;
    if (code && !(bits & INTERPRETER_C_BITS) &&
        (bits & INTERPRETER_KIND_BITS) != INTERPRETER_KIND_DUMMY)
        interpreter_add(reader, code, position);
    if (bits & INTERPRETER_GROUP_BITS)
        interpreter_end_group(reader, 0);
    return 0;
}

/* Reads one frame and moves to its caller; 1 ends the loop. */
static long interpreter_step(__u32 index, void *context)
{
    struct interpreter_reader *reader = *(struct interpreter_reader **)context;
    const struct interpreter_layout *layout = &reader->layout;
    const __u64 frame = reader->frame;
    (void)index;
    if (layout->groups == INTERPRETER_STACKED)
        return interpreter_step_stacked(reader);
    if (!frame || reader->count >= INTERPRETED_FRAMES_MAX ||
        !interpreter_read_piece(reader, frame, layout->frame_bytes))
        return 1;
    /* The low bits are tags in CPython 3.14. */
    const __u64 code = interpreter_word(reader, layout->frame_code) & ~7ULL;
    const __u64 position = interpreter_word(reader, layout->frame_position);
    const __u8 end = (__u8)interpreter_word(reader, layout->group_end);
    reader->frame = interpreter_word(reader, layout->frame_previous);
    if (layout->groups == INTERPRETER_BY_OWNER && end >= INTERPRETER_FRAME_OF_C) {
        interpreter_end_group(reader, frame);
        return 0;
    }
    interpreter_add(reader, code, layout->is_position_short ? (__u32)position : position);
    if (layout->groups == INTERPRETER_EACH_FRAME ||
        (layout->groups == INTERPRETER_BY_FLAG && end)) {
        interpreter_end_group(reader, reader->record);
        if (reader->record &&
            interpreter_pointer(reader->record + layout->record_previous, &reader->record))
            reader->record = 0;
    }
    return 0;
}

/* Whether `thread`, the word at thread_offset from the thread pointer, is the address of the
 * current thread's state: the word may be anything else. */
static __always_inline int interpreter_is_own(const struct interpreter_layout *layout, __u64 thread,
                                              __u64 thread_pointer)
{
    __u64 owner = thread, self;
    if (!layout->thread_self)
        return 1;
    if (layout->thread_owner && interpreter_pointer(thread + layout->thread_owner, &owner))
        return 0;
    return interpreter_pointer(owner + layout->thread_self, &self) == 0 && self == thread_pointer;
}

/* Finds the end of contiguous frames: that of the thread's own stack. */
static __always_inline int interpreter_find_limit(struct interpreter_reader *reader, __u64 thread)
{
    __u64 start, words;
    if (interpreter_pointer(thread + reader->layout.thread_stack, &start) ||
        interpreter_pointer(thread + reader->layout.thread_stack + 8, &words))
        return 0;
    reader->limit = start + 8 * words;
    return 1;
}

/* Finds the state of the current thread and the address of its innermost frame, which is 0 if it
 * runs no script at present. False: no frames can be read. */
static __always_inline int interpreter_begin(struct interpreter_reader *reader,
                                             const struct interpreter_process *process,
                                             __u64 thread_pointer)
{
    __u64 thread;
    reader->layout = process->layout;
    reader->count = reader->group_count = reader->next_group = reader->is_group_filled = 0;
    reader->frame = reader->record = 0;
    const struct interpreter_layout *layout = &reader->layout;
    if (layout->groups == INTERPRETER_NONE || !thread_pointer)
        return 0;
    const __u64 start = layout->is_state_shared ? 0 : thread_pointer;
    if (interpreter_pointer(start + (__u64)process->thread_offset, &thread) || !thread ||
        !interpreter_is_own(layout, thread, thread_pointer))
        return 0;
    if (layout->groups == INTERPRETER_STACKED && !interpreter_find_limit(reader, thread))
        return 0;
    if (layout->has_record && interpreter_pointer(thread + layout->thread_record, &reader->record))
        return 0;
    const __u64 holder = layout->is_frame_in_record ? reader->record + layout->record_frame
                                                    : thread + layout->thread_frame;
    return interpreter_pointer(holder, &reader->frame) == 0;
}

#if CPU_BEFORE_5_17
/* Not static, so that the verifier checks it once; see unwind_frame in cpu.bpf.c. */
int interpreter_step_alone(__u32 index, __u32 slot);
__attribute__((noinline)) int interpreter_step_alone(__u32 index, __u32 slot)
{
    struct interpreter_reader *reader = interpreter_of(slot);
    return reader ? (int)interpreter_step(index, &reader) : 1;
}
#endif

/* Reads all frames of the current thread; NULL: no frames can be read. A step of the loop reads one
 * frame or, with INTERPRETER_BY_OWNER, the end of a group. */
static __always_inline struct interpreter_reader *
interpreter_read_all(__u32 slot, const struct interpreter_process *process, __u64 thread_pointer)
{
    struct interpreter_reader *reader = interpreter_of(slot);
    if (!reader || !interpreter_begin(reader, process, thread_pointer))
        return 0;
#if CPU_BEFORE_5_17
#pragma clang loop unroll(disable)
    for (__u32 i = 0; i < INTERPRETED_FRAMES_MAX + INTERPRETED_GROUPS_MAX; i++) {
        if (interpreter_step_alone(i, slot))
            break;
    }
#else
    bpf_loop(INTERPRETED_FRAMES_MAX + INTERPRETED_GROUPS_MAX, interpreter_step, &reader, 0);
#endif
    return reader;
}

/* Called for each native frame, from the leaf on. The memory of the frame with this number begins
 * at low and ends before high. If it contains the anchor of the next group, the group replaces the
 * frame. */
static __always_inline void interpreter_mark(struct interpreter_reader *reader, __u64 low,
                                             __u64 high, __u32 number)
{
    __u32 group = reader->next_group;
    if (group >= reader->group_count || group >= INTERPRETED_GROUPS_MAX)
        return;
    if (reader->anchor[group] < low) { /* its native frame was not recognised */
        reader->next_group = ++group;
        if (group >= reader->group_count || group >= INTERPRETED_GROUPS_MAX)
            return;
    }
    const __u64 anchor = reader->anchor[group];
    if (anchor < low || anchor >= high)
        return;
    reader->frames[reader->last[group] & (INTERPRETED_FRAMES_MAX - 1)].native = (__u16)number;
    reader->next_group = group + 1;
}

#endif

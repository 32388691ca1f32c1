/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * interpreter_format: where the frames of an interpreter are in the memory of a process, and the
 * form in which they are sent to user space.
 *
 * An interpreter keeps a chain of its own frames beside the native stack. One call of its C
 * function runs a *group* of them, which replaces that function's frame in the merged stack. If the
 * call keeps something on the native stack (the group's *anchor*), the native frame whose memory
 * contains the anchor is the call. Otherwise user space finds the call by the addresses of the
 * function.
 */
#ifndef BPF_INTERPRETER_FORMAT_H
#define BPF_INTERPRETER_FORMAT_H

#include <linux/types.h>

enum {
    INTERPRETED_FRAMES_MAX = 1024, /* CPython's own recursion limit is 1000 */
    INTERPRETED_GROUPS_MAX = 512,  /* as many as native frames */
    INTERPRETER_PIECE_BYTES = 128, /* the most that is read of a frame or a code object */
    INTERPRETED_NOWHERE = 0xffff,  /* value of native: the native frame was not found */
    INTERPRETED_LAST = 1,          /* flag: the last frame of a group, which C called */
    INTERPRETER_FRAME_OF_C = 3,    /* BY_OWNER: smallest value at group_end of a frame of C */
};

/* How the last frame of a group is recognised. */
enum interpreter_groups {
    INTERPRETER_NONE,       /* the process has no interpreter */
    INTERPRETER_EACH_FRAME, /* each frame is a group: C runs each of them in a call of its own */
    INTERPRETER_BY_FLAG,    /* its byte at group_end is not 0 */
    /* A frame whose byte at group_end is at least INTERPRETER_FRAME_OF_C follows it. Such a frame
     * is on the native stack (it is the anchor) and belongs to no function. */
    INTERPRETER_BY_OWNER,
    /* The frames of a thread are contiguous in its own stack; the last one of a group has
     * INTERPRETER_GROUP_BITS in its environment. A frame with INTERPRETER_C_BITS, a dummy frame and
     * a frame without code belong to no function of a script. */
    INTERPRETER_STACKED,
};

/* Bits in the first word of a stacked frame's environment (vm_core.h of Ruby; equal in all
 * versions). */
enum {
    INTERPRETER_GROUP_BITS = 0x20,       /* VM_FRAME_FLAG_FINISH */
    INTERPRETER_C_BITS = 0x80,           /* VM_FRAME_FLAG_CFRAME */
    INTERPRETER_KIND_BITS = 0x7fff0001,  /* VM_FRAME_MAGIC_MASK */
    INTERPRETER_KIND_DUMMY = 0x79990001, /* VM_FRAME_MAGIC_DUMMY: the first frame of a thread */
};

/* Byte offsets of members, which are pointers unless another size is given. groups comes first, as
 * it is read for every process. */
struct interpreter_layout {
    __u8 groups;             /* enum interpreter_groups */
    __u8 has_record;         /* each call of the C function has a record on the native stack */
    __u8 is_frame_in_record; /* the record, not the thread, has the current frame */
    __u8 is_position_short;  /* frame_position has 4 bytes */
    __u8 is_state_shared;    /* one pointer to the state of the running thread, at thread_offset */
    __u8 unused;
    __u16 thread_owner;    /* state: the object that has thread_self; 0: the state itself */
    __u16 thread_self;     /* the thread pointer of the thread; 0: it is not compared */
    __u16 thread_stack;    /* start of the thread's own stack; the next word is its size in words */
    __u16 thread_frame;    /* the current frame, without is_frame_in_record */
    __u16 thread_record;   /* the record of the innermost call */
    __u16 record_frame;    /* record: the current frame */
    __u16 record_previous; /* record: that of the previous call */
    __u16 frame_bytes;     /* bytes to read of a frame; at most INTERPRETER_PIECE_BYTES - 8 */
    __u16 frame_previous;  /* the caller's frame; STACKED: the size of a frame instead */
    __u16 frame_environment; /* the environment */
    __u16 frame_code;        /* the code object */
    __u16 frame_position;    /* position in the code: the address of an instruction, or an index; 8
                                bytes, or 4 with is_position_short */
    __u16 group_end;         /* a byte, see enum interpreter_groups */
    __u16 code_body;         /* code object: the body that has the next members; 0: itself */
    __u16 code_start;        /* start of the part that is read for interpreter_check() */
    __u16 code_bytes;        /* size of that part */
    __u16 code_words[3];     /* offsets in that part of the words that are checked */
};

/* The data about the interpreter of a process that the kernel program needs. */
struct interpreter_process {
    struct interpreter_layout layout;
    /* From the thread pointer to the word that has the address of the thread's state; with
     * is_state_shared the address of that word. */
    __s64 thread_offset;
};

/* A frame; a list of frames begins with the innermost one. */
struct interpreted_frame {
    __u64 code;
    __u64 position;
    __u32 check;  /* interpreter_check() of the code object: shows whether it is still the same */
    __u16 native; /* with INTERPRETED_LAST: the index of the native frame that the group replaces,
                   * or INTERPRETED_NOWHERE */
    __u16 flags;
};

/* A checksum of three words of a code object (code_words), by which user space detects that another
 * object has its address. */
static inline __attribute__((always_inline)) __u32 interpreter_check(__u64 a, __u64 b, __u64 c)
{
    const __u64 mixed = (a ^ (b << 7) ^ (b >> 57) ^ (c << 19) ^ (c >> 45)) * 0x9e3779b97f4a7c15ULL;
    return (__u32)(mixed >> 32);
}

#endif

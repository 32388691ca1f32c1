/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * interpreter_format: what reading an interpreter's frames needs to know of a process, and its
 * result.
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
    INTERPRETED_FRAMES_MAX = 1024, /* CPython's own limit of recursion is 1000 */
    INTERPRETED_GROUPS_MAX = 512,  /* as many as there are frames of the machine */
    INTERPRETER_PIECE_BYTES = 128, /* at most so much of a frame or of a code object is read */
    INTERPRETED_NOWHERE = 0xffff,  /* native, of a group whose call was not found */
    INTERPRETED_LAST = 1,          /* flags: the group's last, the one that C called */
    INTERPRETER_FRAME_OF_C = 3,    /* value at group_end from which a frame is C's, see below */
};

/* Where a group ends. */
enum interpreter_groups {
    INTERPRETER_NONE,       /* there is no interpreter */
    INTERPRETER_EACH_FRAME, /* each frame has a call of its own */
    INTERPRETER_BY_FLAG,    /* at a frame whose byte at group_end is not 0 */
    INTERPRETER_BY_OWNER,   /* at one whose byte there is at least INTERPRETER_FRAME_OF_C: that
                             * lies on the machine's stack and is no frame itself */
    INTERPRETER_STACKED,    /* frames lie one behind the other in the thread's own stack; at one
                             * whose environment has INTERPRETER_GROUP_BITS. One with
                             * INTERPRETER_C_BITS, a dummy or one without code is none of a script */
};

/* Of a stacked frame's environment. */
enum {
    INTERPRETER_GROUP_BITS = 0x20,       /* Ruby's VM_FRAME_FLAG_FINISH, the same in all versions */
    INTERPRETER_C_BITS = 0x80,           /* VM_FRAME_FLAG_CFRAME */
    INTERPRETER_KIND_BITS = 0x7fff0001,  /* VM_FRAME_MAGIC_MASK */
    INTERPRETER_KIND_DUMMY = 0x79990001, /* VM_FRAME_MAGIC_DUMMY: the first of a thread */
};

/* Byte offsets; each value that is not said to be of another size is a pointer. First is what is
 * asked of every process. */
struct interpreter_layout {
    __u8 groups; /* enum interpreter_groups */
    __u8 has_record;
    __u8 is_frame_in_record;
    __u8 is_place_short;
    __u8 is_state_shared; /* one for all threads, at thread_offset itself */
    __u8 unused;
    __u16 thread_owner;      /* in the thread's state: what has thread_self; 0: the state itself */
    __u16 thread_self;       /* the machine's thread pointer; 0: it is not asked */
    __u16 thread_stack;      /* where the thread's own stack begins, and behind it its words */
    __u16 thread_frame;      /* the frame that runs; with has_record in the record of the call */
    __u16 thread_record;     /* the record of the innermost call, on the machine's stack */
    __u16 record_frame;      /* in such a record: the frame that runs */
    __u16 record_previous;   /* the record of the call before */
    __u16 frame_bytes;       /* of a frame; at most INTERPRETER_PIECE_BYTES - 8 */
    __u16 frame_previous;    /* stacked ones: the bytes from one to the next */
    __u16 frame_environment; /* in whose first word are the bits of a group's end */
    __u16 frame_code;
    __u16 frame_place; /* where it is in the code; 8 bytes, or 4 with is_place_short */
    __u16 group_end;   /* a byte */
    __u16 code_body;   /* what the next four count from; 0: the code object itself */
    __u16 code_start;  /* of what is compared of a code object: three words of 8 bytes in it */
    __u16 code_bytes;
    __u16 code_words[3]; /* from code_start on */
};

/* Of a process. */
struct interpreter_process {
    struct interpreter_layout layout;
    __s64 thread_offset; /* from the machine's thread pointer to that of the thread's state; the
                          * address itself with is_state_shared */
};

/* A frame, the innermost first. */
struct interpreted_frame {
    __u64 code;
    __u64 place;
    __u32
        check; /* interpreter_check() of the code, by which user space knows that it is the same */
    __u16 native; /* with INTERPRETED_LAST: the number of the machine's frame in whose place the
                   * group stands, or INTERPRETED_NOWHERE */
    __u16 flags;
};

static inline __attribute__((always_inline)) __u32 interpreter_check(__u64 a, __u64 b, __u64 c)
{
    const __u64 mixed = (a ^ (b << 7) ^ (b >> 57) ^ (c << 19) ^ (c >> 45)) * 0x9e3779b97f4a7c15ULL;
    return (__u32)(mixed >> 32);
}

#endif

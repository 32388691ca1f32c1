/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unwind.bpf: the maps of tables and mapping lists, and unwinding of a whole stack in BPF.
 *
 * Include the kernel's integer types, the map types and bpf_helpers.h before it. Interpreted
 * frames, which are read first, get the number of the native frame that they replace
 * (interpreter.bpf.h). State and stack have to be in map memory (a per-CPU array). unwind_all() is
 * for kernels with bpf_loop (5.17 and later); otherwise a program calls unwind_one() in its
 * own loop.
 */
#ifndef BPF_UNWIND_BPF_H
#define BPF_UNWIND_BPF_H

#include "bpf/interpreter.bpf.h"
#include "bpf/unwind_format.h"

enum {
    UNWIND_MAX_FRAMES = 512,
};

struct unwind_rules {
    struct unwind_rule rule[UNWIND_RULE_COUNT + 1];
};
struct unwind_chunks {
    struct unwind_chunk chunk[UNWIND_CHUNK_COUNT];
};
struct unwind_memos {
    struct unwind_memo memo[UNWIND_MEMO_COUNT];
};
/* With sizes rather than types: a type that only an inner map names is missing in BTF. */
struct unwind_shard_map {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, UNWIND_SHARD_BYTES);
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct unwind_rules);
} unwind_rules SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct unwind_chunks);
} unwind_chunks SEC(".maps");

/* Shared by all CPUs, because they run the same code. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct unwind_memos);
} unwind_memos SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, UNWIND_SHARD_COUNT);
    __type(key, __u32);
    __array(values, struct unwind_shard_map);
} unwind_shards SEC(".maps");

struct unwind_source;

static __always_inline const __u8 *unwind_source_shard(struct unwind_source *source, __u32 index)
{
    (void)source;
    __u32 zero = 0;
    void *shard = bpf_map_lookup_elem(&unwind_shards, &index);
    return shard ? bpf_map_lookup_elem(shard, &zero) : 0;
}

/* Indexes are masked rather than compared: the compiler may compute the address before the
 * comparison, which the verifier refuses. */
static __always_inline const struct unwind_rule *unwind_source_rule(struct unwind_source *source,
                                                                    __u32 index)
{
    (void)source;
    __u32 zero = 0;
    struct unwind_rules *rules = bpf_map_lookup_elem(&unwind_rules, &zero);
    return rules ? &rules->rule[index & (UNWIND_RULE_COUNT - 1)] : 0;
}

static __always_inline const struct unwind_chunk *unwind_source_chunk(struct unwind_source *source,
                                                                      __u32 index)
{
    (void)source;
    __u32 zero = 0;
    struct unwind_chunks *chunks = bpf_map_lookup_elem(&unwind_chunks, &zero);
    return chunks ? &chunks->chunk[index & (UNWIND_CHUNK_COUNT - 1)] : 0;
}

static __always_inline struct unwind_memo *unwind_source_memo(struct unwind_source *source,
                                                              __u32 index)
{
    (void)source;
    __u32 zero = 0;
    struct unwind_memos *memos = bpf_map_lookup_elem(&unwind_memos, &zero);
    return memos ? &memos->memo[index & (UNWIND_MEMO_COUNT - 1)] : 0;
}

static __always_inline int unwind_source_read(struct unwind_source *source, void *to, __u32 size,
                                              __u64 address)
{
    (void)source;
    return bpf_probe_read_user(to, size, (const void *)address) != 0;
}

#include "bpf/unwind_core.h"

/* The unwound stack: addresses to look up (unwind_address), leaf first. */
struct unwind_stack {
    __u32 count;
    __u32 stop; /* enum unwind_stop; UNWIND_CONTINUE only during unwinding */
    __u64 address[UNWIND_MAX_FRAMES];
};

struct unwind_loop {
    struct unwind_state *state;
    struct unwind_stack *stack;
    struct interpreter_reader *interpreted; /* frames of this sample; NULL: there are none */
};

static __always_inline int unwind_record(const struct unwind_state *state,
                                         struct unwind_stack *stack)
{
    __u32 count = stack->count;
    if (count >= UNWIND_MAX_FRAMES)
        return 0;
    stack->address[count] = unwind_address(state);
    stack->count = count + 1;
    return 1;
}

/* Records the frame and moves to its caller; 1 ends the loop. */
static long unwind_one(__u32 index, void *context)
{
    (void)index;
    struct unwind_loop *loop = context;
    if (!unwind_record(loop->state, loop->stack)) {
        loop->stack->stop = UNWIND_STOP_FRAME_LIMIT;
        return 1;
    }
    const __u64 low = loop->state->sp;
    loop->stack->stop = unwind_step((struct unwind_source *)0, loop->state);
    if (loop->stack->stop != UNWIND_CONTINUE) {
        loop->stack->stop =
            unwind_end(loop->state, (enum unwind_stop)loop->stack->stop, &loop->stack->count);
        return 1;
    }
    if (loop->state->was_signal) {
        __u32 last = loop->stack->count - 1;
        if (last < UNWIND_MAX_FRAMES)
            loop->stack->address[last]++;
    } else if (loop->interpreted) {
        interpreter_mark(loop->interpreted, low, loop->state->sp, loop->stack->count - 1);
    }
    return 0;
}

/* Unwinds the whole stack; unwind_begin() comes before. Frames are appended to stack. */
static __always_inline void unwind_all(struct unwind_state *state, struct unwind_stack *stack,
                                       struct interpreter_reader *interpreted)
{
    struct unwind_loop loop = {.state = state, .stack = stack, .interpreted = interpreted};
    bpf_loop(UNWIND_MAX_FRAMES + 1, unwind_one, &loop, 0);
}

#endif

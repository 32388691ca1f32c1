/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unwind_core: unwinds a stack, one frame per call, by the tables of unwind_format.h and, for
 * addresses without a table, by frame pointers. Compiled for BPF and for user space; no libc.
 *
 * The including file first defines:
 *   struct unwind_source;      what the five functions need; NULL in BPF
 *   const __u8 *unwind_source_shard(struct unwind_source *, __u32 shard)
 *                              UNWIND_SHARD_BYTES, or NULL
 *   const struct unwind_rule *unwind_source_rule(struct unwind_source *, __u32 rule)
 *                              and the record after it; UNWIND_RULE_UNKNOWN gives the one of
 *                              UNWIND_RULE_NONE, a number past it may give any
 *   const struct unwind_chunk *unwind_source_chunk(struct unwind_source *, __u32 chunk)
 *   struct unwind_memo *unwind_source_memo(struct unwind_source *, __u32 memo)
 *                              below UNWIND_MEMO_COUNT; NULL: there is no memo
 *   int unwind_source_read(struct unwind_source *, void *to, __u32 size, __u64 address)
 *                              reads memory of the process; 0: all of it was read
 *
 * Use: fill registers (and pac_mask), unwind_begin(), record unwind_address(), then unwind_step()
 * until it returns a reason to stop, recording unwind_address() after each that does not; then
 * unwind_end(). The step out of a signal frame shows that the frame recorded last was one
 * (was_signal): its address is where the handler returns to, not behind a call, and so 1 more.
 *
 * The cost is in reads of the stack and in searches for rules. Reads go through a window of 512
 * bytes, so one read of the process's memory serves about eight frames. Rules of callers that were
 * met before are in a memo. The two searches do not branch on what they compare, because each such
 * branch doubles the paths that the kernel's verifier has to follow.
 */
#ifndef BPF_UNWIND_CORE_H
#define BPF_UNWIND_CORE_H

#include "bpf/unwind_format.h"

#define UNWIND_INLINE static inline __attribute__((always_inline))
/* Keeps the compiler from turning arithmetic on a value back into a branch. */
#define UNWIND_OPAQUE(value) __asm__ volatile("" : "+r"(value))

enum {
    UNWIND_WINDOW_BYTES = 512,
    UNWIND_REGISTER_FP = UNWIND_ARM64 ? 29 : 6, /* DWARF numbers */
    UNWIND_REGISTER_LINK = 30,
    UNWIND_REGISTER_SP = UNWIND_ARM64 ? 31 : 7,
    UNWIND_FP_FRAME_MAX = 1 << 20, /* a frame pointer further above the stack pointer is none */
    UNWIND_SWITCHES_MAX = 8,       /* from one stack to another */
    UNWIND_RUN_STEPS = 17,         /* of a search in UNWIND_RUN_MAX mappings */
    UNWIND_BLOCK_STEPS = 8,        /* and in the rows of a block */
};

enum {
    UNWIND_OPTION_FP_ONLY = 1, /* no tables */
};

struct unwind_state {
    __u64 pc;
    __u64 sp;
    __u64 fp;
    __u64 pac_mask;                    /* arm64: bits of a return address that sign it */
    __u64 leaf[UNWIND_LEAF_REGISTERS]; /* by DWARF number; valid in the first frame */
    struct unwind_run run;
    /* From here on only for the walk itself. */
    __u32 options;
    __u8 is_exact;   /* pc is where it runs, not where it returns to, and all registers are known */
    __u8 was_signal; /* the frame before this one was made by the kernel for a signal handler */
    __u8 is_fp_lost; /* fp is not known any more */
    __u8 stack_switches;
    __u8 is_recalled;       /* rule is that of pc already */
    __u32 unmapped_count;   /* frames since the last one that is in a mapping */
    __u64 signal_registers; /* != 0: they are in the kernel's signal frame, which is here */
    __u64 mapping_start;    /* of the mapping that pc is in; start > end: none */
    struct unwind_mapping mapping;
    struct unwind_rule rule; /* of pc, while its caller is looked for */
    struct unwind_rule_extra extra;
    __u64 window_start;
    __u64 window[UNWIND_WINDOW_BYTES / 8];
};

/* Of the frame that was reached: where it runs, or for a caller the last byte of its call, so that
 * a look-up of it finds the call's line and never the function after. */
UNWIND_INLINE __u64 unwind_address(const struct unwind_state *state)
{
    return state->pc - !state->is_exact;
}

/* One word of the stack, by the window. */
UNWIND_INLINE int unwind_read(struct unwind_source *source, struct unwind_state *state,
                              __u64 address, __u64 *ret_value)
{
    __u64 offset = address - state->window_start;
    if (offset > UNWIND_WINDOW_BYTES - 8) {
        state->window_start = address;
        offset = 0;
        if (unwind_source_read(source, state->window, UNWIND_WINDOW_BYTES, address)) {
            /* Less than a window is left above: the word alone, and no window. */
            state->window_start = ~(__u64)0;
            return unwind_source_read(source, ret_value, sizeof *ret_value, address);
        }
    }
    /* A stack pointer that is not aligned is rare, but not impossible. */
    __builtin_memcpy(ret_value, (const __u8 *)state->window + offset, sizeof *ret_value);
    return 0;
}

UNWIND_INLINE int unwind_is_in_mapping(const struct unwind_state *state, __u64 address)
{
    return address >= state->mapping_start && address < state->mapping.end;
}

/* Makes the mapping of address the state's; false when there is none. */
UNWIND_INLINE int unwind_find_mapping(struct unwind_source *source, struct unwind_state *state,
                                      __u64 address)
{
    if (unwind_is_in_mapping(state, address))
        return 1;
    const __u8 *shard = unwind_source_shard(source, state->run.shard);
    __u64 count = state->run.count;
    __u64 offset = state->run.offset & ~7u;
    if (!shard || !count || count > UNWIND_RUN_MAX)
        return 0;
    __u64 at = 0;
    for (int i = 0; i < UNWIND_RUN_STEPS + 1; i++) {
        if (count <= 1)
            break;
        __u64 half = count >> 1;
        __u64 probe = offset + (at + half) * 8;
        if (probe > UNWIND_SHARD_BYTES - 8)
            return 0;
        /* All ones where the start is above the address; user addresses are below 2^63. */
        __u64 above = (__u64)((__s64)(address - *(const __u64 *)(shard + probe)) >> 63);
        UNWIND_OPAQUE(above);
        at += half & ~above;
        count -= half;
    }
    __u64 start_offset = offset + at * 8;
    __u64 mapping_offset =
        offset + (__u64)state->run.count * 8 + at * sizeof(struct unwind_mapping);
    if (start_offset > UNWIND_SHARD_BYTES - 8 ||
        mapping_offset > UNWIND_SHARD_BYTES - sizeof(struct unwind_mapping))
        return 0;
    __u64 start = *(const __u64 *)(shard + start_offset);
    const struct unwind_mapping *mapping = (const struct unwind_mapping *)(shard + mapping_offset);
    if (address < start || address >= mapping->end)
        return 0;
    state->mapping_start = start;
    state->mapping = *mapping;
    return 1;
}

/* The number of a rule, which need not be aligned. */
UNWIND_INLINE __u32 unwind_rule_at(const __u8 *place)
{
    return place[0] | (__u32)place[1] << 8;
}

/* The rule in force at low, of a block at an offset of the shard. */
UNWIND_INLINE int unwind_search_block(const __u8 *shard, __u64 offset, __u64 row_count, __u64 low,
                                      __u32 *ret_rule)
{
    /* The carry is the first of the rules, and has no address. */
    const __u64 addresses = offset + 2 * row_count + 1;
    __u64 count = row_count + 1, at = 0;
    if (row_count > UNWIND_BLOCK_BYTES)
        return 0;
    for (int i = 0; i < UNWIND_BLOCK_STEPS + 1; i++) {
        if (count <= 1)
            break;
        __u64 half = count >> 1;
        __u64 probe = addresses + at + half;
        if (probe > UNWIND_SHARD_BYTES - 1)
            return 0;
        __u64 above = (__u64)((__s64)(low - shard[probe]) >> 63);
        UNWIND_OPAQUE(above);
        at += half & ~above;
        count -= half;
    }
    offset += at * 2;
    if (offset > UNWIND_SHARD_BYTES - 2)
        return 0;
    *ret_rule = unwind_rule_at(shard + offset);
    return 1;
}

/* The number of the rule for an offset in the table of the state's mapping. */
UNWIND_INLINE int unwind_find_rule(struct unwind_source *source, const struct unwind_state *state,
                                   __u64 offset, __u32 *ret_rule)
{
    *ret_rule = UNWIND_RULE_UNKNOWN;
    __u64 part = offset >> UNWIND_CHUNK_SHIFT;
    if (part >= state->mapping.chunk_count)
        return 1;
    const struct unwind_chunk *chunk =
        unwind_source_chunk(source, (__u32)(state->mapping.first_chunk + part));
    if (!chunk)
        return 0;
    __u64 group = ((offset & (UNWIND_CHUNK_BYTES - 1)) >> UNWIND_GROUP_SHIFT) - chunk->first_group;
    if (group >= chunk->group_count)
        return 1;
    const __u8 *shard = unwind_source_shard(source, chunk->shard);
    __u64 index = (chunk->groups & ~3u) + group * 4;
    if (!shard || index > UNWIND_SHARD_BYTES - 4)
        return 0;
    __u64 begin = *(const __u32 *)(shard + index) & ~1u;
    if (begin > UNWIND_SHARD_BYTES - UNWIND_GROUP_HEAD_BYTES)
        return 0;
    __u64 block = (offset >> UNWIND_BLOCK_SHIFT) & (UNWIND_GROUP_BLOCKS - 1);
    const __u16 *first_row = (const __u16 *)(shard + begin) + block;
    __u64 first = first_row[0], next = first_row[1];
    return unwind_search_block(shard, begin + UNWIND_GROUP_HEAD_BYTES + 2 * block + 3 * first,
                               next - first, offset & (UNWIND_BLOCK_BYTES - 1), ret_rule);
}

UNWIND_INLINE __u64 unwind_memo_key(const struct unwind_state *state, __u64 address)
{
    return address ^ state->run.generation * 0x9e3779b97f4a7c15ULL;
}

UNWIND_INLINE struct unwind_memo *unwind_memo_of(struct unwind_source *source, __u64 key)
{
    return unwind_source_memo(source,
                              (__u32)((key * 0xff51afd7ed558ccdULL) >> (64 - UNWIND_MEMO_BITS)));
}

/* The state's rule for a caller's address, where it is remembered. */
UNWIND_INLINE int unwind_recall(struct unwind_source *source, struct unwind_state *state,
                                __u64 address)
{
    const __u64 key = unwind_memo_key(state, address);
    if (!state->run.generation)
        return 0;
    const struct unwind_memo *memo = unwind_memo_of(source, key);
    if (!memo)
        return 0;
    const __u64 rule = memo->rule;
    if ((memo->check ^ rule) != key)
        return 0;
    __builtin_memcpy(&state->rule, &rule, sizeof rule);
    return 1;
}

/* What needs an extra, or is rare, is looked for each time. */
UNWIND_INLINE void unwind_remember(struct unwind_source *source, const struct unwind_state *state,
                                   __u64 address)
{
    const __u8 kind = state->rule.cfa;
    if (!state->run.generation || (state->rule.saved >> 4) != UNWIND_RA_DEFAULT ||
        (kind > UNWIND_CFA_FP && kind != UNWIND_CFA_LEAF))
        return;
    const __u64 key = unwind_memo_key(state, address);
    struct unwind_memo *memo = unwind_memo_of(source, key);
    if (!memo)
        return;
    __u64 rule;
    __builtin_memcpy(&rule, &state->rule, sizeof rule);
    memo->check = key ^ rule;
    memo->rule = rule;
}

/* Where a register is in the words that the kernel saves for a signal handler. */
UNWIND_INLINE __u64 unwind_signal_slot(__u64 number)
{
#if UNWIND_ARM64
    return number;
#else
    /* r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp (Linux's struct sigcontext); a nibble each.
     */
    return (0x76543210fa89becdULL >> (number * 4)) & 15;
#endif
}

enum { UNWIND_SIGNAL_PC = UNWIND_ARM64 ? 32 : 16 };

/* A register other than those that are followed from frame to frame. */
UNWIND_INLINE enum unwind_stop unwind_leaf_register(struct unwind_source *source,
                                                    struct unwind_state *state, __u64 number,
                                                    __u64 *ret_value)
{
    if (!state->is_exact || number >= UNWIND_LEAF_REGISTERS)
        return UNWIND_STOP_REGISTER;
    if (!state->signal_registers) {
        /* Kernels before 6.2 forget a bound of what was extended by its sign; the mask is one. */
        UNWIND_OPAQUE(number);
        *ret_value = state->leaf[number & (UNWIND_LEAF_REGISTERS - 1)];
        return UNWIND_GO_ON;
    }
    __u64 address = state->signal_registers + unwind_signal_slot(number) * 8;
    return unwind_read(source, state, address, ret_value) ? UNWIND_STOP_STACK_READ : UNWIND_GO_ON;
}

/* What a step finds of the caller before the state becomes it. */
struct unwind_caller {
    __u64 pc;
    __u64 sp;
    __u64 fp;
    __u64 fp_address; /* where it was saved */
    __u8 is_fp_lost;
    __u8 is_signal;
    __u8 is_handler; /* pc is not behind a call */
};

UNWIND_INLINE enum unwind_stop unwind_by_frame_pointer(struct unwind_source *source,
                                                       struct unwind_state *state,
                                                       struct unwind_caller *caller)
{
    __u64 fp = state->fp;
    if (state->is_fp_lost)
        return UNWIND_STOP_REGISTER;
    if (!fp) /* of a process of which nothing is known it says nothing */
        return state->run.count || (state->options & UNWIND_OPTION_FP_ONLY) ? UNWIND_STOP_ROOT_ZERO
                                                                            : UNWIND_STOP_UNMAPPED;
    /* Go runs C on a stack of its own, and the frame pointer still points to the other one. */
    const __u8 is_far = fp < state->sp || fp - state->sp >= UNWIND_FP_FRAME_MAX;
    if ((fp & 7) || (is_far && (state->is_exact || state->stack_switches >= UNWIND_SWITCHES_MAX)))
        return UNWIND_STOP_FRAME_POINTER;
    if (unwind_read(source, state, fp, &caller->fp) ||
        unwind_read(source, state, fp + 8, &caller->pc))
        return is_far ? UNWIND_STOP_FRAME_POINTER : UNWIND_STOP_STACK_READ;
    if (is_far) {
        /* What is not surely a frame is none. */
        if (caller->fp <= fp || caller->fp - fp >= UNWIND_FP_FRAME_MAX ||
            !unwind_find_mapping(source, state, caller->pc - 1))
            return UNWIND_STOP_FRAME_POINTER;
        state->stack_switches++;
    }
    caller->sp = fp + 16;
    return UNWIND_GO_ON;
}

/* A function of Go that has no frame: the frame pointer is its caller's. */
UNWIND_INLINE enum unwind_stop unwind_by_leaf(struct unwind_source *source,
                                              struct unwind_state *state,
                                              struct unwind_caller *caller)
{
    caller->fp = state->fp;
    caller->is_fp_lost = state->is_fp_lost;
    caller->sp = state->sp + (UNWIND_ARM64 ? 0 : 8);
    if (UNWIND_ARM64)
        return unwind_leaf_register(source, state, UNWIND_REGISTER_LINK, &caller->pc);
    return unwind_read(source, state, state->sp, &caller->pc) ? UNWIND_STOP_STACK_READ
                                                              : UNWIND_GO_ON;
}

UNWIND_INLINE enum unwind_stop unwind_cfa(struct unwind_source *source, struct unwind_state *state,
                                          const struct unwind_rule *rule,
                                          const struct unwind_rule_extra *extra, __u64 *ret_cfa)
{
    __u64 base = state->sp;
    __u64 offset = (__u64)(__s64)rule->cfa_offset;
    __u8 kind = rule->cfa;
    if (kind == UNWIND_CFA_PLT) {
        *ret_cfa = base + 8 + ((state->pc & 15) >= offset ? 8 : 0);
        return UNWIND_GO_ON;
    }
    if (kind == UNWIND_CFA_FP || kind == UNWIND_CFA_FP_DEREF) {
        if (state->is_fp_lost)
            return UNWIND_STOP_REGISTER;
        base = state->fp;
    } else if (kind == UNWIND_CFA_REGISTER) {
        enum unwind_stop stop = unwind_leaf_register(source, state, extra->cfa_register, &base);
        if (stop)
            return stop;
    }
    base += offset;
    if (kind == UNWIND_CFA_SP_DEREF || kind == UNWIND_CFA_FP_DEREF) {
        if (unwind_read(source, state, base, &base))
            return UNWIND_STOP_STACK_READ;
        base += (__u64)(__s64)extra->cfa_add;
    }
    *ret_cfa = base;
    return UNWIND_GO_ON;
}

UNWIND_INLINE enum unwind_stop unwind_caller_fp(struct unwind_source *source,
                                                struct unwind_state *state,
                                                const struct unwind_rule *rule, __u64 cfa,
                                                struct unwind_caller *caller)
{
    __u64 address = cfa + (__u64)(__s64)rule->fp_offset;
    caller->is_fp_lost = 0;
    switch (rule->saved & 15) {
    case UNWIND_FP_SAME:
        caller->fp = state->fp;
        caller->is_fp_lost = state->is_fp_lost;
        return UNWIND_GO_ON;
    case UNWIND_FP_AT_CFA:
        break;
    case UNWIND_FP_AT_SP:
        address += state->sp - cfa;
        break;
    case UNWIND_FP_AT_FP:
        if (state->is_fp_lost)
            return UNWIND_STOP_REGISTER;
        address += state->fp - cfa;
        break;
    case UNWIND_FP_REGISTER:
        if (!unwind_leaf_register(source, state, (__u64)(__s64)rule->fp_offset, &caller->fp))
            return UNWIND_GO_ON;
        caller->is_fp_lost = 1;
        return UNWIND_GO_ON;
    default:
        caller->fp = 0;
        caller->is_fp_lost = 1;
        return UNWIND_GO_ON;
    }
    caller->fp_address = address;
    /* Frames by the stack pointer go on without it. */
    if (unwind_read(source, state, address, &caller->fp))
        caller->is_fp_lost = 1;
    return UNWIND_GO_ON;
}

UNWIND_INLINE enum unwind_stop unwind_return_address(struct unwind_source *source,
                                                     struct unwind_state *state,
                                                     const struct unwind_rule *rule,
                                                     const struct unwind_rule_extra *extra,
                                                     __u64 cfa, struct unwind_caller *caller)
{
    __u64 address;
    caller->is_handler = rule->saved >> 7;
    switch (UNWIND_RA_KIND(rule->saved)) {
    case UNWIND_RA_LINK:
        return unwind_leaf_register(source, state, UNWIND_REGISTER_LINK, &caller->pc);
    case UNWIND_RA_REGISTER:
        return unwind_leaf_register(source, state, (__u64)(__s64)extra->ra_offset, &caller->pc);
    case UNWIND_RA_AT_CFA:
        address = cfa + (__u64)(__s64)extra->ra_offset;
        break;
    default:
        address = UNWIND_ARM64 ? caller->fp_address + 8 : cfa - 8;
        break;
    }
    return unwind_read(source, state, address, &caller->pc) ? UNWIND_STOP_STACK_READ : UNWIND_GO_ON;
}

/* A frame that the kernel made for a signal handler: all registers are those of the interrupted. */
UNWIND_INLINE enum unwind_stop unwind_by_signal_frame(struct unwind_source *source,
                                                      struct unwind_state *state, __s32 offset,
                                                      struct unwind_caller *caller)
{
    __u64 base = state->sp + (__u64)(__s64)offset;
    if (unwind_read(source, state, base + unwind_signal_slot(UNWIND_REGISTER_FP) * 8,
                    &caller->fp) ||
        unwind_read(source, state, base + unwind_signal_slot(UNWIND_REGISTER_SP) * 8,
                    &caller->sp) ||
        unwind_read(source, state, base + UNWIND_SIGNAL_PC * 8, &caller->pc))
        return UNWIND_STOP_STACK_READ;
    state->signal_registers = base;
    return UNWIND_GO_ON;
}

UNWIND_INLINE enum unwind_stop unwind_by_rule(struct unwind_source *source,
                                              struct unwind_state *state,
                                              const struct unwind_rule *rule,
                                              const struct unwind_rule_extra *extra,
                                              struct unwind_caller *caller)
{
    enum unwind_stop stop = unwind_cfa(source, state, rule, extra, &caller->sp);
    if (stop)
        return stop;
    /* A leaf whose return address is in a register may have pushed nothing. */
    if (caller->sp < state->sp + !state->is_exact)
        return UNWIND_STOP_NO_PROGRESS;
    stop = unwind_caller_fp(source, state, rule, caller->sp, caller);
    if (stop)
        return stop;
    return unwind_return_address(source, state, rule, extra, caller->sp, caller);
}

/* Looks for the rule of the state's frame, which is in a mapping. */
UNWIND_INLINE enum unwind_stop unwind_look_up(struct unwind_source *source,
                                              struct unwind_state *state, __u64 address)
{
    __u32 number;
    if (!unwind_find_rule(source, state, address - state->mapping.bias, &number))
        return UNWIND_STOP_TABLE;
    const struct unwind_rule *rule = unwind_source_rule(source, number);
    if (!rule)
        return UNWIND_STOP_TABLE;
    state->rule = rule[0];
    state->extra = *(const struct unwind_rule_extra *)(rule + 1);
    /* Where a program is interrupted is seldom the same place again. */
    if (!state->is_exact && number < UNWIND_RULE_UNKNOWN)
        unwind_remember(source, state, address);
    return UNWIND_GO_ON;
}

/* From the state's frame to what is known of its caller. */
UNWIND_INLINE enum unwind_stop unwind_caller_of(struct unwind_source *source,
                                                struct unwind_state *state,
                                                struct unwind_caller *caller)
{
    const struct unwind_rule *rule = &state->rule;
    if (!state->is_recalled) {
        const __u64 address = unwind_address(state);
        if ((state->options & UNWIND_OPTION_FP_ONLY) ||
            !unwind_find_mapping(source, state, address))
            return unwind_by_frame_pointer(source, state, caller);
        const enum unwind_stop stop = unwind_look_up(source, state, address);
        if (stop)
            return stop;
    }
    switch (rule->cfa) {
    case UNWIND_CFA_LEAF:
        if (state->is_exact)
            return unwind_by_leaf(source, state, caller);
        return unwind_by_frame_pointer(source, state, caller);
    case UNWIND_CFA_NONE:
        return unwind_by_frame_pointer(source, state, caller);
    case UNWIND_CFA_STOP:
        return (__u32)rule->cfa_offset - 1 < UNWIND_STOP_COUNT - 1
                   ? (enum unwind_stop)rule->cfa_offset
                   : UNWIND_STOP_TABLE;
    case UNWIND_CFA_SIGNAL:
        caller->is_signal = 1;
        return unwind_by_signal_frame(source, state, rule->cfa_offset, caller);
    default:
        return unwind_by_rule(source, state, rule, &state->extra, caller);
    }
}

/* After the registers are filled. */
UNWIND_INLINE void unwind_begin(struct unwind_state *state, const struct unwind_run *run,
                                __u32 options)
{
    state->run = *run;
    if (options & UNWIND_OPTION_FP_ONLY)
        state->run.generation = 0; /* there are no rules */
    state->options = options;
    state->is_recalled = 0;
    state->is_exact = 1;
    state->was_signal = 0;
    state->stack_switches = 0;
    state->is_fp_lost = 0;
    state->unmapped_count = 0;
    state->signal_registers = 0;
    state->mapping_start = ~(__u64)0;
    state->mapping.end = 0;
    state->window_start = ~(__u64)0;
}

/* Makes the state its caller's. On any other result than UNWIND_GO_ON it stays as it is. */
UNWIND_INLINE enum unwind_stop unwind_step(struct unwind_source *source, struct unwind_state *state)
{
    /* A torn table may ask for what was not set. */
    struct unwind_caller caller = {0, 0, 0, 0, 0, 0, 0};
    enum unwind_stop stop = unwind_caller_of(source, state, &caller);
    if (stop)
        return stop;
    const __u8 is_exact = caller.is_signal | caller.is_handler;
    if (UNWIND_ARM64 && !caller.is_signal)
        caller.pc &= ~state->pac_mask;
    if (!caller.pc)
        return UNWIND_STOP_ROOT_ZERO;
    state->is_recalled = !is_exact && unwind_recall(source, state, caller.pc - 1);
    /* Code that was made executable lately, as JIT compilers do: whether it was code is known when
     * the walk comes back to a mapping, see unwind_end(). */
    if (state->is_recalled || !state->run.count ||
        unwind_find_mapping(source, state, caller.pc - !is_exact))
        state->unmapped_count = 0;
    else
        state->unmapped_count++;
    state->pc = caller.pc;
    state->sp = caller.sp;
    state->fp = caller.fp;
    state->is_fp_lost = caller.is_fp_lost;
    state->is_exact = is_exact;
    state->was_signal = caller.is_signal;
    return UNWIND_GO_ON;
}

/* After the last step: frames at the end that are in no mapping are no frames. Gives the reason
 * for the end, and how many frames are left of count. */
UNWIND_INLINE enum unwind_stop unwind_end(const struct unwind_state *state, enum unwind_stop stop,
                                          __u32 *count)
{
    if (!state->unmapped_count || state->unmapped_count >= *count)
        return stop;
    *count -= state->unmapped_count;
    return UNWIND_STOP_UNMAPPED;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unwind_core: unwinds a stack, one frame per call, by the tables of unwind_format.h and, for
 * addresses without a table, by frame pointers. Compiled for BPF and for user space; no libc.
 *
 * The including file first defines:
 *   struct unwind_source;      the argument of the five functions; NULL in BPF
 *   const __u8 *unwind_source_shard(struct unwind_source *, __u32 shard)
 *                              UNWIND_SHARD_BYTES, or NULL
 *   const struct unwind_rule *unwind_source_rule(struct unwind_source *, __u32 rule)
 *                              the rule, which the next record follows; UNWIND_RULE_UNKNOWN gives
 *                              that of UNWIND_RULE_NONE, a larger number may give any rule
 *   const struct unwind_chunk *unwind_source_chunk(struct unwind_source *, __u32 chunk)
 *   struct unwind_memo *unwind_source_memo(struct unwind_source *, __u32 memo)
 *                              memo < UNWIND_MEMO_COUNT; NULL: there are no memos
 *   int unwind_source_read(struct unwind_source *, void *to, __u32 size, __u64 address)
 *                              reads memory of the process; 0: all bytes were read
 *
 * Use: fill registers (and pac_mask), unwind_begin(), record unwind_address(), then unwind_step()
 * until it returns a reason to stop, recording unwind_address() after each step that does not; then
 * unwind_end(). If a step sets was_signal, the frame recorded last was that of a signal: its
 * address does not follow a call, so the caller adds 1 to the recorded address.
 *
 * The cost is in reads of the stack and in searches for rules. Reads go through a window of 512
 * bytes, so one read of the process's memory serves about eight frames. Rules of callers that were
 * unwound before are in a memo. The two searches do not branch on the values that they compare,
 * because each such branch doubles the paths that the kernel's verifier has to check.
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
    UNWIND_FP_FRAME_MAX = 1 << 20, /* one further above the stack pointer is no frame pointer */
    UNWIND_SWITCHES_MAX = 8,       /* changes from one stack to another */
    UNWIND_MAPPING_STEPS = 17,     /* binary search in UNWIND_MAPPINGS_MAX mappings */
    UNWIND_BLOCK_STEPS = 8,        /* binary search in the rows of a block */
};

struct unwind_state {
    __u64 pc;
    __u64 sp;
    __u64 fp;
    __u64 pac_mask; /* arm64: the bits of a return address that contain its signature */
    __u64 leaf[UNWIND_LEAF_REGISTERS]; /* by DWARF number; valid in the first frame */
    struct unwind_mapping_list list;
    /* The rest is the unwinder's own. */
    __u32 options;
    __u8 is_exact;   /* pc is no return address, and all registers are known */
    __u8 was_signal; /* the previous frame was made by the kernel for a signal handler */
    __u8 is_fp_lost; /* fp is unknown */
    __u8 stack_switches;
    __u8 is_recalled;       /* rule, from a memo, is already that of pc */
    __u32 unmapped_count;   /* frames since the last one that is in a mapping */
    __u64 signal_registers; /* address of the registers in a signal frame; 0: they are in leaf */
    __u64 mapping_start;    /* of the mapping that pc is in; start > end: none */
    struct unwind_mapping mapping;
    struct unwind_rule rule; /* of pc, during a step */
    struct unwind_rule_extra extra;
    __u64 window_start;
    __u64 window[UNWIND_WINDOW_BYTES / 8];
};

/* The address of the current frame to look up: for a caller the last byte of its call instruction,
 * so that the look-up finds the line of the call and never the next function. */
UNWIND_INLINE __u64 unwind_address(const struct unwind_state *state)
{
    return state->pc - !state->is_exact;
}

/* Reads one word of the stack, through the window. 0: it was read. */
UNWIND_INLINE int unwind_read(struct unwind_source *source, struct unwind_state *state,
                              __u64 address, __u64 *ret_value)
{
    __u64 offset = address - state->window_start;
    if (offset > UNWIND_WINDOW_BYTES - 8) {
        state->window_start = address;
        offset = 0;
        if (unwind_source_read(source, state->window, UNWIND_WINDOW_BYTES, address)) {
            /* The stack ends within the window: reads the word alone. */
            state->window_start = ~(__u64)0;
            return unwind_source_read(source, ret_value, sizeof *ret_value, address);
        }
    }
    /* Copied, because the stack pointer may be unaligned. */
    __builtin_memcpy(ret_value, (const __u8 *)state->window + offset, sizeof *ret_value);
    return 0;
}

UNWIND_INLINE int unwind_is_in_mapping(const struct unwind_state *state, __u64 address)
{
    return address >= state->mapping_start && address < state->mapping.end;
}

/* Loads the mapping of address into the state; false: there is none. */
UNWIND_INLINE int unwind_find_mapping(struct unwind_source *source, struct unwind_state *state,
                                      __u64 address)
{
    if (unwind_is_in_mapping(state, address))
        return 1;
    const __u8 *shard = unwind_source_shard(source, state->list.shard);
    __u64 count = state->list.count;
    __u64 offset = state->list.offset & ~7u;
    if (!shard || !count || count > UNWIND_MAPPINGS_MAX)
        return 0;
    __u64 at = 0;
    for (int i = 0; i < UNWIND_MAPPING_STEPS + 1; i++) {
        if (count <= 1)
            break;
        __u64 half = count >> 1;
        __u64 probe = offset + (at + half) * 8;
        if (probe > UNWIND_SHARD_BYTES - 8)
            return 0;
        /* All ones if the start is above the address; user addresses are below 2^63. */
        __u64 above = (__u64)((__s64)(address - *(const __u64 *)(shard + probe)) >> 63);
        UNWIND_OPAQUE(above);
        at += half & ~above;
        count -= half;
    }
    __u64 start_offset = offset + at * 8;
    __u64 mapping_offset =
        offset + (__u64)state->list.count * 8 + at * sizeof(struct unwind_mapping);
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

/* Reads the number of a rule, which may be unaligned. */
UNWIND_INLINE __u32 unwind_rule_at(const __u8 *at)
{
    return at[0] | (__u32)at[1] << 8;
}

/* Finds the rule that holds at the address low in the block at offset in the shard. False: the
 * table is inconsistent. */
UNWIND_INLINE int unwind_search_block(const __u8 *shard, __u64 offset, __u64 row_count, __u64 low,
                                      __u32 *ret_rule)
{
    /* The first rule is the carry: it holds from before the block and has no address. */
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

/* Finds the number of the rule for an offset in the table of the current mapping. False: the table
 * is inconsistent. */
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

/* The multipliers of the key and of the index are those of Fibonacci hashing (2^64 / golden ratio)
 * and of MurmurHash3. */
UNWIND_INLINE __u64 unwind_memo_key(const struct unwind_state *state, __u64 address)
{
    return address ^ state->list.generation * 0x9e3779b97f4a7c15ULL;
}

UNWIND_INLINE struct unwind_memo *unwind_memo_of(struct unwind_source *source, __u64 key)
{
    return unwind_source_memo(source,
                              (__u32)((key * 0xff51afd7ed558ccdULL) >> (64 - UNWIND_MEMO_BITS)));
}

/* Loads the remembered rule for the address of a caller; false: there is no memo of it. */
UNWIND_INLINE int unwind_recall(struct unwind_source *source, struct unwind_state *state,
                                __u64 address)
{
    const __u64 key = unwind_memo_key(state, address);
    if (!state->list.generation)
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

/* Remembers the rule of a caller, except rules with an extra record and rare ones. */
UNWIND_INLINE void unwind_remember(struct unwind_source *source, const struct unwind_state *state,
                                   __u64 address)
{
    const __u8 kind = state->rule.cfa;
    if (!state->list.generation || (state->rule.saved >> 4) != UNWIND_RA_DEFAULT ||
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

/* The index of a register in the words that the kernel saves for a signal handler. */
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

/* Reads a register other than pc, sp and fp: they are known in an exact frame only. */
UNWIND_INLINE enum unwind_stop unwind_leaf_register(struct unwind_source *source,
                                                    struct unwind_state *state, __u64 number,
                                                    __u64 *ret_value)
{
    if (!state->is_exact || number >= UNWIND_LEAF_REGISTERS)
        return UNWIND_STOP_REGISTER;
    if (!state->signal_registers) {
        /* Before Linux 6.2 the verifier loses the bound of a sign-extended value, so the index is
         * masked again. */
        UNWIND_OPAQUE(number);
        *ret_value = state->leaf[number & (UNWIND_LEAF_REGISTERS - 1)];
        return UNWIND_CONTINUE;
    }
    __u64 address = state->signal_registers + unwind_signal_slot(number) * 8;
    return unwind_read(source, state, address, ret_value) ? UNWIND_STOP_STACK_READ
                                                          : UNWIND_CONTINUE;
}

/* The caller's frame, which a step finds before it changes the state. */
struct unwind_caller {
    __u64 pc;
    __u64 sp;
    __u64 fp;
    __u64 fp_address; /* where fp was saved */
    __u8 is_fp_lost;
    __u8 is_signal;
    __u8 is_handler; /* pc does not follow a call */
};

UNWIND_INLINE enum unwind_stop unwind_by_frame_pointer(struct unwind_source *source,
                                                       struct unwind_state *state,
                                                       struct unwind_caller *caller)
{
    __u64 fp = state->fp;
    if (state->is_fp_lost)
        return UNWIND_STOP_REGISTER;
    if (!fp) /* the root, unless nothing is known of the process */
        return state->list.count || (state->options & UNWIND_OPTION_FP_ONLY) ? UNWIND_STOP_ROOT_ZERO
                                                                             : UNWIND_STOP_UNMAPPED;
    /* Go runs C on another stack, while the frame pointer still points to the goroutine's stack. */
    const __u8 is_far = fp < state->sp || fp - state->sp >= UNWIND_FP_FRAME_MAX;
    if ((fp & 7) || (is_far && (state->is_exact || state->stack_switches >= UNWIND_SWITCHES_MAX)))
        return UNWIND_STOP_FRAME_POINTER;
    if (unwind_read(source, state, fp, &caller->fp) ||
        unwind_read(source, state, fp + 8, &caller->pc))
        return is_far ? UNWIND_STOP_FRAME_POINTER : UNWIND_STOP_STACK_READ;
    if (is_far) {
        /* Accepts the other stack only if it certainly has a frame there. */
        if (caller->fp <= fp || caller->fp - fp >= UNWIND_FP_FRAME_MAX ||
            !unwind_find_mapping(source, state, caller->pc - 1))
            return UNWIND_STOP_FRAME_POINTER;
        state->stack_switches++;
    }
    caller->sp = fp + 16;
    return UNWIND_CONTINUE;
}

/* A leaf of Go that has no frame: the frame pointer is that of its caller. */
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
                                                              : UNWIND_CONTINUE;
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
        return UNWIND_CONTINUE;
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
    return UNWIND_CONTINUE;
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
        return UNWIND_CONTINUE;
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
            return UNWIND_CONTINUE;
        caller->is_fp_lost = 1;
        return UNWIND_CONTINUE;
    default:
        caller->fp = 0;
        caller->is_fp_lost = 1;
        return UNWIND_CONTINUE;
    }
    caller->fp_address = address;
    /* Unwinding continues without fp as long as rules use the stack pointer. */
    if (unwind_read(source, state, address, &caller->fp))
        caller->is_fp_lost = 1;
    return UNWIND_CONTINUE;
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
    return unwind_read(source, state, address, &caller->pc) ? UNWIND_STOP_STACK_READ
                                                            : UNWIND_CONTINUE;
}

/* A frame that the kernel made for a signal handler contains all registers of the interrupted code.
 */
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
    return UNWIND_CONTINUE;
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
    /* A caller must be above; a leaf with its return address in a register may have pushed nothing.
     */
    if (caller->sp < state->sp + !state->is_exact)
        return UNWIND_STOP_NO_PROGRESS;
    stop = unwind_caller_fp(source, state, rule, caller->sp, caller);
    if (stop)
        return stop;
    return unwind_return_address(source, state, rule, extra, caller->sp, caller);
}

/* Looks up the rule of the current frame, which is in a mapping. */
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
    /* Not for the leaf: a program is seldom interrupted at the same address again. */
    if (!state->is_exact && number < UNWIND_RULE_UNKNOWN)
        unwind_remember(source, state, address);
    return UNWIND_CONTINUE;
}

/* Finds the caller of the current frame: by its rule, or by frame pointer. */
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

/* Prepares unwinding; the registers in the state are filled. */
UNWIND_INLINE void unwind_begin(struct unwind_state *state, const struct unwind_mapping_list *list,
                                __u32 options)
{
    state->list = *list;
    if (options & UNWIND_OPTION_FP_ONLY)
        state->list.generation = 0; /* no tables, so no memos */
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

/* Moves from the current frame to its caller. If the result is not UNWIND_CONTINUE, pc, sp and fp
 * are still those of the current frame, other members may have changed, and no step may follow. */
UNWIND_INLINE enum unwind_stop unwind_step(struct unwind_source *source, struct unwind_state *state)
{
    /* All zeros, because an inconsistent table may use a member that was not set. */
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
    /* An address outside of all mappings may be new JIT code, or garbage. It was code if unwinding
     * reaches a mapping afterwards; see unwind_end(). */
    if (state->is_recalled || !state->list.count ||
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
    return UNWIND_CONTINUE;
}

/* After the last step: drops the frames at the end that are in no mapping. Returns the reason for
 * the end, and reduces *count by the dropped frames. */
UNWIND_INLINE enum unwind_stop unwind_end(const struct unwind_state *state, enum unwind_stop stop,
                                          __u32 *count)
{
    if (!state->unmapped_count || state->unmapped_count >= *count)
        return stop;
    *count -= state->unmapped_count;
    return UNWIND_STOP_UNMAPPED;
}

#endif

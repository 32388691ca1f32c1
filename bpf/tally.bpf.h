/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tally: counts samples that equal an earlier one in the kernel instead of sending each.
 *
 * Equal samples have the same process, program (an exec changes it), mappings, thread name, stacks
 * and reason to stop. The first one is sent with a key, and later ones are counted under the key.
 * There are two maps: for each window the agent switches to the other one, then reads and empties
 * the previous one. The time between two switches is a *phase*; its number, 0 or 1, is that of its
 * map. In each phase each stack is sent once. Samples for which the map has no space, deep stacks,
 * and stacks that the agent unwinds are sent one by one.
 */
#ifndef BPF_TALLY_BPF_H
#define BPF_TALLY_BPF_H

#include "bpf/shared.h"

const volatile __u8 has_tallies = 0;

/* Preallocated, because before Linux 6.1 programs at perf events may use no other hash maps. Sizes
 * are set before loading. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u64);
    __type(value, struct sample_tally);
} tallies_even SEC(".maps"), tallies_odd SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} tally_phase SEC(".maps");

enum {
    TALLY_FIRST_WORD = __builtin_offsetof(struct sample_event, comm) / 8,
    TALLY_WORDS_MAX = 256, /* of a record; longer ones, with deep stacks, are sent */
};

/* The number of the program of the current process: changes with each exec. */
static __always_inline __u64 program_number(void)
{
#if CPU_BEFORE_5_17
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    return BPF_CORE_READ(task, self_exec_id);
#else
    return bpf_get_current_task_btf()->self_exec_id;
#endif
}

/* The key of a sample; its lowest bit is the phase. 0: the sample is sent uncounted. */
static __always_inline __u64 tally_key(const struct sample_event *event, __u64 words,
                                       __u32 generation, __u32 phase)
{
    const __u64 prime = 0x9e3779b97f4a7c15ULL;
    const __u64 *word = (const __u64 *)event;
    __u64 key = ((event->started_ns ^ event->process_id * prime) * prime + generation) * prime;
    key = (key + program_number()) * prime;
    if (words > TALLY_WORDS_MAX)
        return 0;
#pragma clang loop unroll(disable)
    for (__u32 i = TALLY_FIRST_WORD; i < TALLY_WORDS_MAX; i++) {
        if (i >= words)
            break;
        key = (key ^ key >> 32 ^ word[i]) * prime;
    }
    key ^= key >> 29;
    return (key | 2) - (key & 1) + phase; /* bit 1 is set, so that no key is 0 */
}

static __always_inline _Bool tally_in(void *tallies, struct sample_event *event, __u64 key)
{
    const struct sample_tally none = {};
    struct sample_tally *known = bpf_map_lookup_elem(tallies, &key);
    if (known) {
        __sync_fetch_and_add(&known->samples, 1);
        __sync_fetch_and_add(&known->amount, event->amount);
        return 1;
    }
    if (!bpf_map_update_elem(tallies, &key, &none, BPF_NOEXIST))
        event->key = key;
    return 0;
}

/* Counts a sample of the current process. False: it has to be sent; event->key is set if it is the
 * first one of its kind. generation: that of the mapping list by which it was unwound; 0: none. */
static __always_inline _Bool tally(struct sample_event *event, __u64 bytes, __u32 generation)
{
    const __u32 zero = 0;
    const __u32 *phase = bpf_map_lookup_elem(&tally_phase, &zero);
    if (!phase || event->stack_bytes)
        return 0;
    const __u32 odd = *phase & 1;
    const __u64 key = tally_key(event, bytes / 8, generation, odd);
    if (!key)
        return 0;
    return odd ? tally_in(&tallies_odd, event, key) : tally_in(&tallies_even, event, key);
}

/* Removes the key of a first sample whose record was lost: the agent does not know the stack that
 * the key counts. */
static __always_inline void tally_forget(const struct sample_event *event)
{
    const __u64 key = event->key;
    if (key & 1)
        bpf_map_delete_elem(&tallies_odd, &key);
    else if (key)
        bpf_map_delete_elem(&tallies_even, &key);
}

#endif

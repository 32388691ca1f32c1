/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * subsample.bpf: selects from the events that the kernel counts, so that each CPU takes about
 * subsample_hz samples a second: a small fraction if there are many events, all if there are few.
 *
 * The kernel's own control (attr.freq) overestimates bursts several times, because it lets a sample
 * stand for its next period. Here each event is selected with a probability that previous events
 * have set, and stands for all events since the last selected one, so sums are right.
 */
#ifndef BPF_SUBSAMPLE_BPF_H
#define BPF_SUBSAMPLE_BPF_H

const volatile __u32 subsample_hz = 0; /* 0: all events are selected */

enum {
    SUBSAMPLE_SHIFT_MAX = 24,
    SUBSAMPLE_NS = 100 * 1000 * 1000, /* interval in which selected events are counted */
    SUBSAMPLE_PER_S = 10,             /* such intervals in a second */
};

struct subsampling {
    __u64 since_ns;
    __u64 seen;  /* events since the last selected one */
    __u32 taken; /* selected since since_ns */
    __u32 shift; /* one of 2^shift events is selected */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct subsampling);
} subsamplings SEC(".maps");

/* Halves the probability at once if twice as many events as wanted were selected; doubles it if
 * less than half as many were selected in an interval. */
static void subsample_adapt(struct subsampling *subsampling)
{
    const __u32 limit = subsample_hz / SUBSAMPLE_PER_S + 1;
    const __u64 now_ns = bpf_ktime_get_ns();
    if (subsampling->taken > 2 * limit && subsampling->shift < SUBSAMPLE_SHIFT_MAX) {
        subsampling->shift++;
        subsampling->taken = limit;
    }
    if (now_ns - subsampling->since_ns < SUBSAMPLE_NS)
        return;
    if (subsampling->taken < limit / 2 + 1 && subsampling->shift > 0)
        subsampling->shift--;
    subsampling->taken = 0;
    subsampling->since_ns = now_ns;
}

/* The number of events that the current one stands for; 0: it is not selected. */
static __u64 subsample_take(__u64 period)
{
    const __u32 zero = 0;
    struct subsampling *subsampling = subsample_hz ? bpf_map_lookup_elem(&subsamplings, &zero) : 0;
    if (!subsampling)
        return period;
    subsample_adapt(subsampling);
    subsampling->seen++;
    if (bpf_get_prandom_u32() & ((1U << (subsampling->shift & 31)) - 1))
        return 0;
    const __u64 seen = subsampling->seen;
    subsampling->seen = 0;
    subsampling->taken++;
    return seen;
}

#endif

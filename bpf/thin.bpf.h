/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * thin.bpf: selects from the events that the kernel counts, so that each CPU takes about thin_hz
 * samples a second: a small fraction if there are many events, all if there are few.
 *
 * The kernel's own control (attr.freq) overestimates bursts several times, because it lets a sample
 * stand for its next period. Here each event is selected with a probability that previous events
 * have set, and stands for all events since the last selected one, so sums are right.
 */
#ifndef BPF_THIN_BPF_H
#define BPF_THIN_BPF_H

const volatile __u32 thin_hz = 0; /* 0: all events are selected */

enum {
    THIN_SHIFT_MAX = 24,
    THIN_NS = 100 * 1000 * 1000, /* interval in which selected events are counted */
    THIN_PER_S = 10,             /* such intervals in a second */
};

struct thinning {
    __u64 since_ns;
    __u64 seen;  /* events since the last selected one */
    __u32 taken; /* selected since since_ns */
    __u32 shift; /* one of 2^shift events is selected */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct thinning);
} thinnings SEC(".maps");

/* Halves the probability if twice as many events as wanted were selected, at once; doubles it if
 * less than half as many were selected in an interval. */
static void thin_adapt(struct thinning *thinning)
{
    const __u32 limit = thin_hz / THIN_PER_S + 1;
    const __u64 now_ns = bpf_ktime_get_ns();
    if (thinning->taken > 2 * limit && thinning->shift < THIN_SHIFT_MAX) {
        thinning->shift++;
        thinning->taken = limit;
    }
    if (now_ns - thinning->since_ns < THIN_NS)
        return;
    if (thinning->taken < limit / 2 + 1 && thinning->shift > 0)
        thinning->shift--;
    thinning->taken = 0;
    thinning->since_ns = now_ns;
}

/* The number of events that the current one stands for; 0: it is not selected. */
static __u64 thin_take(__u64 period)
{
    const __u32 zero = 0;
    struct thinning *thinning = thin_hz ? bpf_map_lookup_elem(&thinnings, &zero) : 0;
    if (!thinning)
        return period;
    thin_adapt(thinning);
    thinning->seen++;
    if (bpf_get_prandom_u32() & ((1U << (thinning->shift & 31)) - 1))
        return 0;
    const __u64 seen = thinning->seen;
    thinning->seen = 0;
    thinning->taken++;
    return seen;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shared: what the programs in the kernel and the agent say to each other: the record of one
 * sample, its limits and the counters. Both sides are compiled from this file and loaded together,
 * so it may change at any time.
 */
#ifndef BPF_SHARED_H
#define BPF_SHARED_H

#include "bpf/interpreter_format.h"
#include "bpf/unwind_format.h"

#include <linux/types.h>

enum {
    SAMPLE_KERNEL_FRAMES_MAX = 127, /* as the kernel's own limit, kernel.perf_event_max_stack */
    SAMPLE_USER_FRAMES_MAX = 512,
    SAMPLE_COMM_BYTES = 16,
    SAMPLE_TARGETS_MAX = 65536, /* processes that are sampled where not all are */
    SAMPLE_PROCESSES_MAX = 65536,
    SAMPLE_WAITS_MAX = 32768,   /* threads of which is known since when they wait */
    SAMPLE_TALLIES_MAX = 16384, /* stacks that are counted in the kernel at once */
};

enum sample_kind {
    SAMPLE_TICK,   /* of a perf event */
    SAMPLE_WAIT,   /* a thread leaves its CPU */
    SAMPLE_RESUME, /* it is back: a head alone, with thread_id and amount */
};

/* One sample, as long as its frames: addresses of the program first, then the kernel's, then
 * interpreted frames (sample_interpreted); each leaf first. The program's lie in calls; of the
 * kernel's all but the leaf are return addresses. Where a process's mappings are not known yet, or
 * not all, the newest part of its stack is behind all addresses (struct sample_stack), to be walked
 * when they are. */
struct sample_event {
    __u64 time_ns; /* CLOCK_MONOTONIC */
    /* When the process was, since boot: tells it from a later one of its number. */
    __u64 started_ns;
    /* TICK: what is counted, since the last of this CPU; RESUME: time_ns of the WAIT. */
    __u64 amount;
    __u64 key;        /* TICK: those that are like it are counted under it; 0: each is sent */
    __u32 process_id; /* as the agent's PID namespace has it; 0: it has not */
    __u32 thread_id;
    char comm[SAMPLE_COMM_BYTES];
    __u32 kind; /* enum sample_kind */
    __u32 kernel_count;
    __u32 interpreted_count;
    __u32 stack_bytes; /* of struct sample_stack; 0: none */
    /* From here on as struct unwind_stack of bpf/unwind.bpf.h. */
    __u32 user_count;
    __u32 stop; /* enum unwind_stop */
    __u64 addresses[SAMPLE_USER_FRAMES_MAX + SAMPLE_KERNEL_FRAMES_MAX];
    struct interpreted_frame room[INTERPRETED_FRAMES_MAX]; /* the record is cut before its end */
};

#define SAMPLE_EVENT_HEAD_BYTES __builtin_offsetof(struct sample_event, addresses)

/* What stands under a key: samples after the one that was sent. */
struct sample_tally {
    __u64 samples;
    __u64 amount; /* theirs, as of struct sample_event */
};

static inline const struct interpreted_frame *sample_interpreted(const struct sample_event *event)
{
    return (const struct interpreted_frame *)(event->addresses + event->user_count +
                                              event->kernel_count);
}

enum { SAMPLE_STACK_PAGES = 3, SAMPLE_STACK_PAGE_BYTES = 4096 };

struct sample_stack {
    __u64 pc;
    __u64 registers[UNWIND_LEAF_REGISTERS]; /* by DWARF number */
    __u64 start; /* of bytes: the stack pointer, or the next page where its own was never written */
    __u8 bytes[SAMPLE_STACK_PAGES * SAMPLE_STACK_PAGE_BYTES];
};

#define SAMPLE_STACK_HEAD_BYTES __builtin_offsetof(struct sample_stack, bytes)

/* A process whose mappings were told lately may have got others since. */
#define SAMPLE_FRESH_NS 1000000000ull

static inline const struct sample_stack *sample_stack_of(const struct sample_event *event)
{
    return (const struct sample_stack *)(event->addresses + event->user_count +
                                         event->kernel_count);
}

/* How long a record is. */
static inline __u64 sample_event_bytes(const struct sample_event *event)
{
    return SAMPLE_EVENT_HEAD_BYTES + 8 * ((__u64)event->kernel_count + event->user_count) +
           sizeof(struct interpreted_frame) * (__u64)event->interpreted_count + event->stack_bytes;
}

/* Memory to make a sample in: of each kind of program its own, as one may interrupt the other. */
enum { SCRATCH_TICK, SCRATCH_SWITCH, SCRATCH_COUNT };

/* What the walk has to know of a process, by its process_id. */
struct sample_process {
    __u64 started_ns; /* 0: of any start */
    __u64 told_ns;    /* when, by CLOCK_MONOTONIC */
    struct unwind_run run;
    struct interpreter_process interpreter;
};

/* What the records do not say. Of each CPU, since the start. */
struct sample_counters {
    __u64 tallied;       /* ticks that were counted in the kernel */
    __u64 lost_ticks;    /* the ring was full */
    __u64 lost;          /* these, and waits */
    __u64 waits;         /* that were chosen */
    __u64 refused_waits; /* of more threads than there is room for */
    __u64 foreign;       /* of processes that the agent's PID namespace does not have; no waits */
};

#endif

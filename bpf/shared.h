/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shared: what the kernel programs and the agent exchange: the record of a sample, its limits, and
 * counters. Both sides are compiled from this file and loaded together, so it may change at any
 * time.
 */
#ifndef BPF_SHARED_H
#define BPF_SHARED_H

#include "bpf/interpreter_format.h"
#include "bpf/unwind_format.h"

#include <linux/types.h>

enum {
    SAMPLE_KERNEL_FRAMES_MAX = 127, /* the kernel's default limit, kernel.perf_event_max_stack */
    SAMPLE_USER_FRAMES_MAX = 512,
    SAMPLE_COMM_BYTES = 16,
    SAMPLE_TARGETS_MAX = 65536,   /* processes that are sampled if only some are wanted */
    SAMPLE_PROCESSES_MAX = 65536, /* entries of struct sample_process */
    SAMPLE_INTERVALS_MAX = 32768, /* open off-CPU intervals */
    SAMPLE_TALLIES_MAX = 16384,   /* different stacks that are counted in one phase (tally.bpf.h) */
};

enum sample_kind {
    SAMPLE_TICK,       /* a tick of a perf event */
    SAMPLE_SWITCH_OUT, /* a thread leaves its CPU: start of an off-CPU interval */
    SAMPLE_SWITCH_IN,  /* it runs again: only the head, with time_ns, thread_id and amount */
};

/* A record, only as long as its frames require: user addresses, kernel addresses, interpreted
 * frames (sample_interpreted), each leaf first. User addresses are inside of the call instruction;
 * kernel addresses, except the leaf, are return addresses. If not all mappings of the process are
 * known yet, the newest part of the stack follows the addresses (struct sample_stack), and the
 * agent unwinds it when they are known. */
struct sample_event {
    __u64 time_ns; /* CLOCK_MONOTONIC */
    /* Start of the process since boot: distinguishes it from a later one with the same number. */
    __u64 started_ns;
    /* TICK: the event's count since the last tick of this CPU; SWITCH_IN: time_ns of the
     * SWITCH_OUT. */
    __u64 amount;
    __u64 key;        /* TICK: equal samples are counted under this key; 0: each is sent */
    __u32 process_id; /* in the agent's PID namespace; not set with SWITCH_IN */
    __u32 thread_id;
    char comm[SAMPLE_COMM_BYTES];
    __u32 kind; /* enum sample_kind */
    __u32 kernel_count;
    __u32 interpreted_count;
    __u32 stack_bytes; /* of struct sample_stack; 0: none */
    /* From here on the layout of struct unwind_stack (bpf/unwind.bpf.h). */
    __u32 user_count;
    __u32 stop; /* enum unwind_stop */
    __u64 addresses[SAMPLE_USER_FRAMES_MAX + SAMPLE_KERNEL_FRAMES_MAX];
    struct interpreted_frame
        reserved[INTERPRETED_FRAMES_MAX]; /* space for frames; a record ends with its last frame */
};

#define SAMPLE_EVENT_HEAD_BYTES __builtin_offsetof(struct sample_event, addresses)

/* The count of a key: the samples that equal the one that was sent, without that one. */
struct sample_tally {
    __u64 samples;
    __u64 amount; /* sum of their sample_event.amount */
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
    __u64 start; /* address of bytes: the stack pointer, or the next page if its page is not mapped
                    yet */
    __u8 bytes[SAMPLE_STACK_PAGES * SAMPLE_STACK_PAGE_BYTES];
};

#define SAMPLE_STACK_HEAD_BYTES __builtin_offsetof(struct sample_stack, bytes)

/* A process whose mappings were published less than this ago may have changed them since. */
#define SAMPLE_FRESH_NS 1000000000ull

static inline const struct sample_stack *sample_stack_of(const struct sample_event *event)
{
    return (const struct sample_stack *)(event->addresses + event->user_count +
                                         event->kernel_count);
}

/* The length of a record. */
static inline __u64 sample_event_bytes(const struct sample_event *event)
{
    return SAMPLE_EVENT_HEAD_BYTES + 8 * ((__u64)event->kernel_count + event->user_count) +
           sizeof(struct interpreted_frame) * (__u64)event->interpreted_count + event->stack_bytes;
}

/* Scratch memory for records: one per kind of program, because one may interrupt the other. */
enum { SCRATCH_TICK, SCRATCH_SWITCH, SCRATCH_COUNT };

/* The data of a process that unwinding needs; the key is process_id. */
struct sample_process {
    __u64 started_ns;   /* 0: the start time is not known, any is accepted */
    __u64 published_ns; /* CLOCK_MONOTONIC */
    struct unwind_mapping_list list;
    struct interpreter_process interpreter;
};

/* Counts that no record carries; per CPU, since the start. */
struct sample_counters {
    __u64 tallied;         /* ticks that were counted in the kernel */
    __u64 lost_ticks;      /* the ring buffer was full */
    __u64 lost;            /* lost_ticks and lost off-CPU records */
    __u64 off_cpu;         /* selected off-CPU intervals */
    __u64 refused_off_cpu; /* no space in the map of open intervals */
    __u64 foreign;         /* ticks of processes outside of the agent's PID namespace */
};

#endif

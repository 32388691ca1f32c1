/*
 * event_kind: the events that can be sampled: time, or counts of the processor or the kernel.
 *
 * CPU time is always sampled by a timer of the kernel, which ticks at fixed intervals of the
 * time that a processor is not idle, so that each sample stands for the same time. The timer cannot
 * tick while interrupts are off: that time is attributed to the code that enables them again. A
 * counter of cycles ticks then too, but at the requested rate per second of elapsed time: on a
 * processor that is busy for a tenth of each millisecond, each sample would stand for a tenth of
 * the time. Cycles are therefore sampled as a count of their own only.
 *
 * Threads: any.
 */
#ifndef AGENT_KERNEL_EVENT_KIND_H
#define AGENT_KERNEL_EVENT_KIND_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
    EVENT_CPU,       /* CPU time */
    EVENT_CPU_CLOCK, /* the same event, by the name that perf(1) has for it */
    EVENT_CYCLES,
    EVENT_INSTRUCTIONS,
    EVENT_CACHE_MISSES,
    EVENT_PAGE_FAULTS,
    EVENT_CONTEXT_SWITCHES,
    EVENT_KIND_COUNT
};

struct event_facts {
    const char *name; /* in options, as in perf(1) */
    const char *type; /* in a profile */
    const char *unit;
    const char *source; /* for reports, after "by the": "processor's cycle counter" */
    bool is_hardware;   /* not every machine has it */
    uint32_t perf_type; /* `type` of struct perf_event_attr */
    uint64_t perf_config;
};

const struct event_facts *event_facts(enum event_kind kind);
/* Finds an event by name; false: there is none. */
bool event_kind_find(const char *name, enum event_kind *ret_kind);

/* Whether a sample stands for a period of time rather than for a number of events. */
static inline bool event_kind_is_time(enum event_kind kind)
{
    return kind == EVENT_CPU || kind == EVENT_CPU_CLOCK;
}

/* Whether the kernel passes every event to our program, which selects some (bpf/subsample.bpf.h).
 */
static inline bool event_kind_is_subsampled(enum event_kind kind)
{
    return kind == EVENT_PAGE_FAULTS || kind == EVENT_CONTEXT_SWITCHES;
}

#endif

/*
 * event_kind: what makes a sample: time, or something that processors or the kernel count.
 * Threads: any.
 */
#ifndef AGENT_KERNEL_EVENT_KIND_H
#define AGENT_KERNEL_EVENT_KIND_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
    EVENT_CPU, /* processor time: by cycles where the processor counts them, else by the clock */
    EVENT_CPU_CLOCK,
    EVENT_CYCLES,
    EVENT_INSTRUCTIONS,
    EVENT_CACHE_MISSES,
    EVENT_PAGE_FAULTS,
    EVENT_CONTEXT_SWITCHES,
    EVENT_KIND_COUNT
};

struct event_facts {
    const char *name; /* as perf(1) and our options call it */
    const char *type; /* in a profile */
    const char *unit;
    const char *source; /* "by the …" */
    bool is_hardware;   /* a machine may not have it */
    uint32_t perf_type; /* of struct perf_event_attr */
    uint64_t perf_config;
};

const struct event_facts *event_facts(enum event_kind kind);
/* By its name; false: there is none. */
bool event_kind_find(const char *name, enum event_kind *ret_kind);

/* A sample stands for a part of a second, rather than for as many events as were counted. */
static inline bool event_kind_is_time(enum event_kind kind)
{
    return kind == EVENT_CPU || kind == EVENT_CPU_CLOCK;
}

/* All are given to our program, which takes some of them (bpf/thin.bpf.h). */
static inline bool event_kind_is_thinned(enum event_kind kind)
{
    return kind == EVENT_PAGE_FAULTS || kind == EVENT_CONTEXT_SWITCHES;
}

#endif

/*
 * perf_event: the events that the agent asks the kernel for (perf_event_open(2)), as descriptors.
 * Threads: any.
 */
#ifndef AGENT_KERNEL_PERF_EVENT_H
#define AGENT_KERNEL_PERF_EVENT_H

#include "agent/kernel/event_kind.h"

#include <stdbool.h>
#include <stdint.h>

/* An event of a CPU that ticks hz times a second while it is busy, of a counter of the processor so
 * often that it comes to about that, and of one of the kernel each time (event_kind_is_thinned);
 * for a program to be attached to. -1 and errno. */
int perf_event_open_sampler(uint32_t cpu, uint32_t hz, enum event_kind kind);

/* An event of a CPU that never ticks, but writes down what processes do: mappings with the build
 * ids of their files (has_build_ids: since 5.12), names, forks and ends, with their time on
 * CLOCK_MONOTONIC. -1 and errno. */
int perf_event_open_side_band(uint32_t cpu, bool has_build_ids);

/* For users without rights. An event of this process that never ticks, whose ring others write
 * into; and one of a thread while it is on that CPU, which ticks as perf_event_open_sampler says in
 * the program's own code, writes down stacks by frame pointers (PERF_EVENT_OWN_SAMPLE) and what the
 * thread's process does, and is inherited by threads and processes to come. -1 and errno. */
enum { PERF_EVENT_REGISTER_PC = UINT32_MAX >> 1 };
#ifdef __aarch64__
enum { PERF_EVENT_REGISTER_COUNT = 33 };
#else
enum { PERF_EVENT_REGISTER_COUNT = 17 };
#endif
/* The DWARF number of the i-th register of such a sample. */
uint32_t perf_event_register(uint32_t i);
int perf_event_open_own_ring(uint32_t cpu, uint32_t watermark_bytes);
struct perf_event_own {
    uint32_t hz;
    enum event_kind kind;
    bool has_build_ids; /* of mapped files: since 5.12 */
    bool has_no_stacks; /* else, up to 1,000 Hz, registers and the newest part of each stack */
};
int perf_event_open_own(uint32_t thread_id, uint32_t cpu, const struct perf_event_own *wanted);

#endif

/*
 * perf_event: opens the perf events that the agent uses (perf_event_open(2)). All functions return
 * a descriptor, or -1 with errno. Threads: any.
 */
#ifndef AGENT_KERNEL_PERF_EVENT_H
#define AGENT_KERNEL_PERF_EVENT_H

#include "agent/kernel/event_kind.h"

#include <stdbool.h>
#include <stdint.h>

/* Opens an event on a CPU to attach a program to. A timer ticks hz times a second while the CPU is
 * busy, an event of a processor counter at about that rate. A kernel event for which
 * event_kind_is_subsampled ticks at every occurrence. */
int perf_event_open_sampler(uint32_t cpu, uint32_t hz, enum event_kind kind);

/* Opens an event on a CPU that never ticks but records process events in its ring: mappings, with
 * the build ids of their files (has_build_ids: since 5.12), names, forks and exits, with
 * CLOCK_MONOTONIC times. */
int perf_event_open_sideband(uint32_t cpu, bool has_build_ids);

/* Whether an event of the two functions above still counts time. When its CPU goes offline, an
 * event stops permanently, also if the CPU returns; its descriptor stays valid, and neither reads
 * nor polls fail. A call interrupts the CPU. */
bool perf_event_is_alive(int fd);

/*
 * Two events for users without privileges, who may sample only their own processes ("own"):
 *
 *   perf_event_open_own_ring   an event of this process that never ticks; the other events write to
 *                              its ring (PERF_EVENT_IOC_SET_OUTPUT)
 *   perf_event_open_own        an event of one thread on one CPU. It ticks about hz times a second
 *                              while the thread runs user code, records frame-pointer stacks and
 *                              process events, and is inherited by new threads and processes
 *
 * perf_event_open_own does not support kinds for which event_kind_is_subsampled: they need a BPF
 * program, and `perfolio record` refuses them without privileges (agent_options.may_be_unprivileged
 * in agent/agent.h).
 */
enum { PERF_EVENT_REGISTER_PC = UINT32_MAX >> 1 };
#ifdef __aarch64__
enum { PERF_EVENT_REGISTER_COUNT = 33 };
#else
enum { PERF_EVENT_REGISTER_COUNT = 17 };
#endif
/* The DWARF number of the i-th register in a sample of perf_event_open_own, or
 * PERF_EVENT_REGISTER_PC for the instruction pointer. i < PERF_EVENT_REGISTER_COUNT. */
uint32_t perf_event_register(uint32_t i);
/* Wakes the reader (poll) once watermark_bytes are in the ring. */
int perf_event_open_own_ring(uint32_t cpu, uint32_t watermark_bytes);
struct perf_event_own {
    uint32_t hz;
    enum event_kind kind;
    bool has_build_ids; /* since 5.12 */
    bool has_no_stacks; /* false: up to 1,000 Hz, samples have registers and the newest 4 to 16 KiB
                           of each stack */
};
int perf_event_open_own(uint32_t thread_id, uint32_t cpu, const struct perf_event_own *wanted);

#endif

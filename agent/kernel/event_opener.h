/*
 * event_opener: a process that opens perf events of CPUs for an agent that has dropped CAP_PERFMON.
 *
 * The events of a CPU that comes online while the agent runs have to be opened then. The process is
 * forked before the agent drops its capabilities. It keeps only CAP_PERFMON and the socket to the
 * agent: no other capability and no other open file. Its only input is the requests of its parent.
 * So the agent, which reads data of untrusted programs, does not need the capability itself. The
 * process ends with its parent.
 *
 * Threads: one. The functions that open an event return a descriptor, or -1 with errno.
 */
#ifndef AGENT_KERNEL_EVENT_OPENER_H
#define AGENT_KERNEL_EVENT_OPENER_H

#include "agent/kernel/event_kind.h"

#include <stdbool.h>
#include <stdint.h>

struct event_opener;

/* NULL: the process could not be started. */
struct event_opener *event_opener_start(void);
void event_opener_stop(struct event_opener *opener); /* NULL is a no-op */

/* Open an event with perf_event_open_sampler or perf_event_open_sideband: in this process first
 * and, if that is forbidden (EACCES, EPERM) and opener is not NULL, in the opener's process. */
int event_opener_sampler(struct event_opener *opener, uint32_t cpu, uint32_t hz,
                         enum event_kind kind);
int event_opener_sideband(struct event_opener *opener, uint32_t cpu, bool has_build_ids);

#endif

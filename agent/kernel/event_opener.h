/*
 * event_opener: a process that opens perf events of CPUs for an agent that has dropped CAP_PERFMON.
 *
 * The events of a CPU that comes online while the agent runs have to be opened then. The process is
 * forked before the agent drops its capabilities and keeps CAP_PERFMON and nothing else: no other
 * capability and no open file. Its only input are the requests of its parent, so the code that
 * reads data of other programs does not have the capability. It ends with its parent.
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

/* Like perf_event_open_sampler and perf_event_open_sideband, which are called in this process and,
 * if that is forbidden and opener is not NULL, in the other one. */
int event_opener_sampler(struct event_opener *opener, uint32_t cpu, uint32_t hz,
                         enum event_kind kind);
int event_opener_sideband(struct event_opener *opener, uint32_t cpu, bool has_build_ids);

#endif

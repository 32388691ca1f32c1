/*
 * waits: threads that left their CPU, with their stacks, until they are back.
 *
 * The kernel program tells the two by themselves (bpf/off_cpu.bpf.h): the stack can be read when a
 * thread leaves alone, and how long it waits is known when it is back. Memory is bounded; what does
 * not fit is counted and is no wait. Threads: one.
 */
#ifndef AGENT_KERNEL_OFF_CPU_H
#define AGENT_KERNEL_OFF_CPU_H

#include <stdint.h>

struct sample_event;
struct off_cpu;

/* Is given each wait that is over, or one that goes on: its stack, and for how long since the last
 * time. */
typedef void off_cpu_visit(void *context, const struct sample_event *event, int64_t waited_ns);

/* Shorter ones are not given. */
struct off_cpu *off_cpu_create(int64_t min_ns, off_cpu_visit *visit, void *context);
void off_cpu_destroy(struct off_cpu *off_cpu); /* NULL is a no-op */

void off_cpu_begin(struct off_cpu *off_cpu, const struct sample_event *event);
void off_cpu_end(struct off_cpu *off_cpu, const struct sample_event *resume);
/* All that go on; they begin anew at now_ns, so that each window has what lies in it. */
void off_cpu_cut(struct off_cpu *off_cpu, int64_t now_ns);
uint64_t off_cpu_refused(const struct off_cpu *off_cpu);

#endif

/*
 * off_cpu: the open off-CPU intervals: threads that left their CPU, with the stacks that they had
 * then, until they run again.
 *
 * The kernel program sends two records (bpf/off_cpu.bpf.h): the stack can only be read at
 * switch-out, and the duration is known at switch-in. Memory is bounded: intervals beyond the limit
 * are counted and dropped. Threads: one.
 */
#ifndef AGENT_KERNEL_OFF_CPU_H
#define AGENT_KERNEL_OFF_CPU_H

#include <stdint.h>

struct sample_event;
struct off_cpu;

/*
 * Receives an interval that has ended or was cut, or the next part of it. event: the
 * SAMPLE_SWITCH_OUT record, with the stack; borrowed during the call. off_cpu_ns: the time since
 * the end of the part that was passed before; in the first call for an interval, since its start.
 */
typedef void off_cpu_visit(void *context, const struct sample_event *event, int64_t off_cpu_ns);

/* Intervals shorter than min_ns are not passed to visit; a longer one is passed once it has lasted
 * for min_ns. context is passed to visit. */
struct off_cpu *off_cpu_create(int64_t min_ns, off_cpu_visit *visit, void *context);
void off_cpu_destroy(struct off_cpu *off_cpu); /* NULL is a no-op */

/* Opens an interval; copies the SAMPLE_SWITCH_OUT record, without a copied stack. */
void off_cpu_begin(struct off_cpu *off_cpu, const struct sample_event *event);
/* Ends the interval of a SAMPLE_SWITCH_IN record and passes the rest of it to visit. */
void off_cpu_end(struct off_cpu *off_cpu, const struct sample_event *resume);
/* Called at the end of a window: passes each open interval that has lasted for min_ns to visit, as
 * far as now_ns. The next window gets the time from now_ns on. An interval that is still below
 * min_ns belongs to the next window as a whole, with the time from before now_ns. */
void off_cpu_cut(struct off_cpu *off_cpu, int64_t now_ns);
/* The number of intervals for which there was no space. */
uint64_t off_cpu_refused(const struct off_cpu *off_cpu);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * off_cpu: records off-CPU intervals. At a switch the outgoing thread is unwound, because its
 * memory is readable then and does not change. A second record reports its return, and the agent
 * joins the two:
 *
 *   switch from A to B, A was selected: open_intervals[A] = now; SWITCH_OUT of A with its stack
 *   switch from X to A: SWITCH_IN of A with the time in open_intervals[A], which is deleted
 *
 * A random selection of the switches is recorded. If the second switch was missed, the next
 * selected switch from A ends the old interval first (end_missed_interval).
 *
 * Part of cpu.bpf.c. It runs with interrupts off and has its own scratch memory, because a
 * non-maskable interrupt may take a sample meanwhile.
 */
#ifndef BPF_OFF_CPU_BPF_H
#define BPF_OFF_CPU_BPF_H

/* A switch is selected if a random number of 32 bits is not above it. */
const volatile __u32 off_cpu_threshold = 0;

/* The start of a thread's open interval; the key is the kernel's own thread number. */
struct off_cpu_start {
    __u64 since_ns;
    __u64 ran_ns;   /* CPU time of the thread at since_ns */
    __u64 switches; /* number of its switches before this one */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1); /* SAMPLE_INTERVALS_MAX if off-CPU profiling is on */
    __type(key, __u32);
    __type(value, struct off_cpu_start);
} open_intervals SEC(".maps");

enum { TASK_IS_EXITING = 4 }; /* PF_EXITING: the thread will not run again */

static void end_interval(__u32 number, __u64 since_ns, __u64 until_ns, struct task_struct *task,
                         struct scratch *sample)
{
    struct sample_event *event = &sample->event;
    event->kind = SAMPLE_SWITCH_IN;
    event->amount = since_ns;
    event->time_ns = until_ns;
    event->thread_id = thread_number(task);
    event->user_count = event->kernel_count = event->interpreted_count = event->stack_bytes = 0;
    event->key = 0;
    bpf_map_delete_elem(&open_intervals, &number);
    send(sample);
}

/* Ends an interval whose end was missed, when its thread leaves the CPU again. Some kernels run no
 * BPF program while certain processes run, so a switch from such a process to the thread is not
 * seen. If the thread has not left its CPU in between, it has run without a pause since its return:
 * the CPU time that it has used since gives the time of the return. Otherwise the time is unknown,
 * and the interval is counted as lost. */
static void end_missed_interval(__u32 number, const struct off_cpu_start *now,
                                struct task_struct *task, struct scratch *sample)
{
    const struct off_cpu_start *missed = bpf_map_lookup_elem(&open_intervals, &number);
    if (!missed)
        return;
    const __u64 since_ns = missed->since_ns, ran_ns = now->ran_ns - missed->ran_ns;
    if (now->switches - missed->switches == 1 && now->since_ns - since_ns > ran_ns)
        end_interval(number, since_ns, now->since_ns - ran_ns, task, sample);
    else
        COUNT(lost);
}

static void begin_interval(struct bpf_raw_tracepoint_args *context, struct scratch *sample)
{
    const __u32 slot = SCRATCH_SWITCH;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    const __u32 number = (__u32)bpf_get_current_pid_tgid();
    struct sample_event *event = &sample->event;
    if (number == 0 || BPF_CORE_READ(task, flags) & TASK_IS_EXITING)
        return;
    event->process_id = process_number(task);
    if (!is_wanted(event->process_id))
        return;
    struct off_cpu_start begun = {.since_ns = bpf_ktime_get_ns(),
                                  .ran_ns = BPF_CORE_READ(task, se.sum_exec_runtime),
                                  .switches =
                                      BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw)};
    end_missed_interval(number, &begun, task, sample);
    event->kind = SAMPLE_SWITCH_OUT;
    event->amount = 0;
    fill(slot, (void *)0, context, sample);
    begun.since_ns = event->time_ns;
    if (bpf_map_update_elem(&open_intervals, &number, &begun, BPF_ANY)) {
        COUNT(refused_off_cpu);
        return;
    }
    COUNT(off_cpu);
    if (!send(sample))
        bpf_map_delete_elem(&open_intervals, &number);
}

/* A switch that is not selected, to a thread without an open interval, costs a look-up and a random
 * number. */
SEC("raw_tp/sched_switch")
int note_switch(struct bpf_raw_tracepoint_args *context)
{
    const __u32 slot = SCRATCH_SWITCH;
    struct task_struct *next = (struct task_struct *)context->args[2];
    const __u32 number = (__u32)BPF_CORE_READ(next, pid);
    const struct off_cpu_start *begun = number ? bpf_map_lookup_elem(&open_intervals, &number) : 0;
    const _Bool is_chosen = bpf_get_prandom_u32() <= off_cpu_threshold;
    if (!begun && !is_chosen)
        return 0;
    struct scratch *sample = bpf_map_lookup_elem(&scratch, &slot);
    if (!sample)
        return 0;
    if (begun)
        end_interval(number, begun->since_ns, bpf_ktime_get_ns(), next, sample);
    if (is_chosen)
        begin_interval(context, sample);
    return 0;
}

#endif

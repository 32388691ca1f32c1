/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * off_cpu: where threads wait. At a switch of threads the one that leaves is walked, for then its
 * memory can be read and it stands still; when it comes back that is told by itself, and the agent
 * joins the two. Of the switches some are chosen, by chance.
 *
 * Part of cpu.bpf.c. It runs with interrupts off and its own scratch memory, since a sample may be
 * taken in between by an interrupt that cannot be masked.
 */
#ifndef BPF_OFF_CPU_BPF_H
#define BPF_OFF_CPU_BPF_H

const volatile __u32 wait_threshold = 0; /* chosen are random numbers up to it */

/* Since when a thread waits that was chosen; by the kernel's own number of it. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1); /* SAMPLE_WAITS_MAX where waits are sampled */
    __type(key, __u32);
    __type(value, __u64);
} waits SEC(".maps");

enum { TASK_IS_EXITING = 4 }; /* PF_EXITING of the kernel: it does not come back */

static void begin_wait(struct bpf_raw_tracepoint_args *context, struct scratch *made)
{
    const __u32 slot = SCRATCH_SWITCH;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    const __u32 number = (__u32)bpf_get_current_pid_tgid();
    struct sample_event *event = &made->event;
    if (number == 0 || BPF_CORE_READ(task, flags) & TASK_IS_EXITING)
        return;
    event->process_id = process_number(task);
    if (!is_wanted(event->process_id))
        return;
    event->kind = SAMPLE_WAIT;
    event->amount = 0;
    fill(slot, (void *)0, context, made);
    const __u64 since_ns = event->time_ns;
    if (bpf_map_update_elem(&waits, &number, &since_ns, BPF_ANY)) {
        COUNT(refused_waits);
        return;
    }
    COUNT(waits);
    if (!send(made))
        bpf_map_delete_elem(&waits, &number);
}

static void end_wait(__u32 number, __u64 since_ns, struct task_struct *task, struct scratch *made)
{
    struct sample_event *event = &made->event;
    event->kind = SAMPLE_RESUME;
    event->amount = since_ns;
    event->time_ns = bpf_ktime_get_ns();
    event->thread_id = thread_number(task);
    event->user_count = event->kernel_count = event->interpreted_count = event->stack_bytes = 0;
    event->key = 0;
    bpf_map_delete_elem(&waits, &number);
    send(made);
}

/* Most switches are of no interest: those cost a look-up and a random number. */
SEC("raw_tp/sched_switch")
int note_switch(struct bpf_raw_tracepoint_args *context)
{
    const __u32 slot = SCRATCH_SWITCH;
    struct task_struct *next = (struct task_struct *)context->args[2];
    const __u32 number = (__u32)BPF_CORE_READ(next, pid);
    const __u64 *since_ns = number ? bpf_map_lookup_elem(&waits, &number) : 0;
    const _Bool is_chosen = bpf_get_prandom_u32() <= wait_threshold;
    if (!since_ns && !is_chosen)
        return 0;
    struct scratch *made = bpf_map_lookup_elem(&scratch, &slot);
    if (!made)
        return 0;
    if (since_ns)
        end_wait(number, *since_ns, next, made);
    if (is_chosen)
        begin_wait(context, made);
    return 0;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cpu: the sampling program. At every tick of a perf event it writes the running thread with its
 * stacks to the ring buffer. If requested, it also records where threads wait, at thread switches
 * (bpf/off_cpu.bpf.h).
 *
 * A sample costs unwinding two stacks and one copy. Most stacks of a window are new, so sending
 * each sample is cheaper than keeping it (agent/README.md). Equal samples are counted only if
 * requested (bpf/tally.bpf.h).
 *
 * Compiled twice: for Linux 5.17 and later, and with CPU_BEFORE_5_17 (cpu_bounded.bpf.c) for 5.10
 * to 5.16, which lack bpf_loop and, before 5.15, bpf_task_pt_regs. Two objects rather than a
 * branch, because newer kernels refuse a callback in code that is never reached.
 */
#ifndef CPU_BEFORE_5_17
#define CPU_BEFORE_5_17 0
#endif

#include "bpf/kernel_types.bpf.h"
#include "bpf/shared.h"

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/subsample.bpf.h"
#include "bpf/tally.bpf.h"
#include "bpf/unwind.bpf.h"

_Static_assert(__builtin_offsetof(struct sample_event, addresses) -
                       __builtin_offsetof(struct sample_event, user_count) ==
                   __builtin_offsetof(struct unwind_stack, address),
               "a stack is unwound into the record");
_Static_assert(sizeof(struct sample_stack) <=
                   INTERPRETED_FRAMES_MAX * sizeof(struct interpreted_frame),
               "a record has either a stack or interpreted frames");
_Static_assert((int)SAMPLE_USER_FRAMES_MAX == (int)UNWIND_MAX_FRAMES, "one limit for both");

/* The programs, which the agent finds by their names. */
int sample_cpu(struct bpf_perf_event_data *context);
int note_switch(struct bpf_raw_tracepoint_args *context); /* in off_cpu.bpf.h */
int follow_fork(struct bpf_raw_tracepoint_args *context);
int forget_program(struct bpf_raw_tracepoint_args *context);
int forget_process(struct bpf_raw_tracepoint_args *context);

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
const volatile __u32 agent_namespace =
    0;                                  /* inode of the agent's PID namespace; 0: the initial one */
const volatile __u8 has_targets = 0;    /* only processes in the map are sampled */
const volatile __u8 unwind_options = 0; /* UNWIND_OPTION_… */
const volatile __u64 wake_bytes = 0;    /* a CPU wakes the agent after writing this much */
#if CPU_BEFORE_5_17
const volatile __u64 kernel_stack_bytes = 0; /* THREAD_SIZE of the kernel */
#endif

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20); /* set before loading */
} samples SEC(".maps");

/* Scratch memory for one sample. At 19 Hz it has left the CPU caches since the previous sample, so
 * members that each sample needs are next to each other. */
struct scratch {
    __u64 unread_bytes;   /* written since this CPU woke the agent */
    __u32 is_interpreted; /* for unwind_frame: interpreted frames were read */
    __u32 is_early;       /* mappings of the process may be missing: the sample carries its stack */
    __u64 pc;             /* in user code */
    struct unwind_state state;
    struct sample_event event;
    bpf_user_pt_regs_t registers;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, SCRATCH_COUNT);
    __type(key, __u32);
    __type(value, struct scratch);
} scratch SEC(".maps");

/* The key is process_id. The agent writes it, and follow_fork for a child. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, SAMPLE_PROCESSES_MAX);
    __type(key, __u32);
    __type(value, struct sample_process);
} processes SEC(".maps");

/* Counts only events for which there is no record; the agent counts samples by their records. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sample_counters);
} counters SEC(".maps");

/* The key is process_id. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, SAMPLE_TARGETS_MAX);
    __type(key, __u32);
    __type(value, __u8);
} targets SEC(".maps");

#define COUNT(what)                                                                                \
    do {                                                                                           \
        const __u32 first = 0;                                                                     \
        struct sample_counters *counter = bpf_map_lookup_elem(&counters, &first);                  \
        if (counter)                                                                               \
            counter->what++;                                                                       \
    } while (0)

enum { NAMESPACE_LEVELS_MAX = 8 };

/* The number of a task in the agent's PID namespace; 0: the task is outside of it. */
static __u32 number_in_namespace(struct task_struct *task)
{
    struct pid *pid = BPF_CORE_READ(task, thread_pid);
    const __u32 level = BPF_CORE_READ(pid, level);
    for (__u32 i = 0; i < NAMESPACE_LEVELS_MAX; i++) {
        struct upid number;
        if (i > level)
            return 0;
        bpf_core_read(&number, sizeof(number), &pid->numbers[i]);
        if (BPF_CORE_READ(number.ns, ns.inum) == agent_namespace)
            return (__u32)number.nr;
    }
    return 0;
}

static __u32 process_number(struct task_struct *task)
{
    if (!agent_namespace)
        return (__u32)BPF_CORE_READ(task, tgid);
    return number_in_namespace(BPF_CORE_READ(task, group_leader));
}

static __u32 thread_number(struct task_struct *task)
{
    return agent_namespace ? number_in_namespace(task) : (__u32)BPF_CORE_READ(task, pid);
}

/*
 * Decides whether a record wakes the agent. The agent reads the ring several times a second, and
 * waking it for each sample costs more than the sample. Each CPU counts what it writes, because
 * querying the fill level of the ring costs more too.
 */
static __u64 ring_flags(struct scratch *sample, __u64 bytes)
{
    sample->unread_bytes += bytes;
    if (sample->unread_bytes < wake_bytes)
        return BPF_RB_NO_WAKEUP;
    sample->unread_bytes = 0;
    return BPF_RB_FORCE_WAKEUP;
}

#if UNWIND_ARM64
static __always_inline void take_registers(struct unwind_state *state,
                                           const bpf_user_pt_regs_t *from)
{
    /* The context of a BPF program may only be read at constant offsets. */
#pragma clang loop unroll(full)
    for (int i = 0; i < 31; i++)
        state->leaf[i] = from->regs[i];
    state->leaf[UNWIND_REGISTER_SP] = from->sp;
    state->pc = from->pc;
    state->sp = from->sp;
    state->fp = from->regs[UNWIND_REGISTER_FP];
    /* User addresses have 48 bits. */
    state->pac_mask = ~((1ULL << 48) - 1);
}

static __always_inline _Bool is_compat(const bpf_user_pt_regs_t *registers)
{
    return registers->pstate & 0x10; /* PSR_MODE32_BIT */
}

static __always_inline _Bool is_of_program(const bpf_user_pt_regs_t *registers)
{
    return !(registers->pstate & 0xf); /* PSR_MODE_MASK, EL0t */
}
#else
static __always_inline void take_registers(struct unwind_state *state,
                                           const bpf_user_pt_regs_t *from)
{
    /* By DWARF number: System V ABI, AMD64 supplement, figure 3.36. */
    state->leaf[0] = from->rax;
    state->leaf[1] = from->rdx;
    state->leaf[2] = from->rcx;
    state->leaf[3] = from->rbx;
    state->leaf[4] = from->rsi;
    state->leaf[5] = from->rdi;
    state->leaf[6] = from->rbp;
    state->leaf[7] = from->rsp;
    state->leaf[8] = from->r8;
    state->leaf[9] = from->r9;
    state->leaf[10] = from->r10;
    state->leaf[11] = from->r11;
    state->leaf[12] = from->r12;
    state->leaf[13] = from->r13;
    state->leaf[14] = from->r14;
    state->leaf[15] = from->r15;
    state->pc = from->rip;
    state->sp = from->rsp;
    state->fp = from->rbp;
    state->pac_mask = 0;
}

static __always_inline _Bool is_compat(const bpf_user_pt_regs_t *registers)
{
    return (__u16)registers->cs == 0x23; /* __USER32_CS */
}

static __always_inline _Bool is_of_program(const bpf_user_pt_regs_t *registers)
{
    return (registers->cs & 3) == 3;
}
#endif

static __u64 thread_pointer(void)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
#if UNWIND_ARM64
    return BPF_CORE_READ(task, thread.uw.tp_value);
#else
    return BPF_CORE_READ(task, thread.fsbase);
#endif
}

#if CPU_BEFORE_5_17
/* Unwinds one frame; 1 ends the loop. The verifier checks a function that is not static once, by
 * itself, and assumes only that a call returns a number. 513 calls therefore cost it little, while
 * 513 inlined copies would exceed its limit. Such a function takes no pointers, so it looks its
 * arguments up again. */
int unwind_frame(__u32 index, __u32 slot);
__attribute__((noinline)) int unwind_frame(__u32 index, __u32 slot)
{
    struct scratch *sample = bpf_map_lookup_elem(&scratch, &slot);
    if (!sample)
        return 1;
    struct unwind_loop loop = {.state = &sample->state,
                               .stack = (struct unwind_stack *)&sample->event.user_count,
                               .interpreted = sample->is_interpreted ? interpreter_of(slot) : 0};
    return (int)unwind_one(index, &loop);
}

static void unwind_frames(__u32 slot, struct scratch *sample,
                          struct interpreter_reader *interpreted)
{
    sample->is_interpreted = interpreted != 0;
#pragma clang loop unroll(disable)
    for (__u32 i = 0; i < UNWIND_MAX_FRAMES + 1; i++) {
        if (unwind_frame(i, slot))
            return;
    }
}

/* The user registers with which the thread entered the kernel: at the end of its kernel stack. */
static _Bool find_entry(bpf_user_pt_regs_t *ret_registers)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    const __u64 bytes = (__u64)bpf_core_type_size(struct pt_regs);
    const __u8 *end = BPF_CORE_READ(task, stack);
    end += kernel_stack_bytes;
    return !bpf_probe_read_kernel(ret_registers, sizeof(*ret_registers), end - bytes) &&
           is_of_program(ret_registers);
}
#else
static void unwind_frames(__u32 slot, struct scratch *sample,
                          struct interpreter_reader *interpreted)
{
    (void)slot;
    unwind_all(&sample->state, (struct unwind_stack *)&sample->event.user_count, interpreted);
}

/* The user registers with which the thread entered the kernel. */
static _Bool find_entry(bpf_user_pt_regs_t *ret_registers)
{
    const void *registers = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
    return !bpf_probe_read_kernel(ret_registers, sizeof(*ret_registers), registers);
}
#endif

/* Copies the user registers into the unwinder's state. */
static __always_inline enum unwind_stop find_registers(struct bpf_perf_event_data *context,
                                                       _Bool is_in_program, struct scratch *sample)
{
    if (is_in_program) {
        if (is_compat(&context->regs))
            return UNWIND_STOP_COMPAT;
        take_registers(&sample->state, &context->regs);
        /* Keeps the compiler from merging this copy with the one below: the context may only be
         * read at constant offsets. */
        __asm__ volatile("" ::"r"(context));
        return UNWIND_CONTINUE;
    }
    if (!find_entry(&sample->registers))
        return UNWIND_STOP_REGISTER;
    if (is_compat(&sample->registers))
        return UNWIND_STOP_COMPAT;
    take_registers(&sample->state, &sample->registers);
    return UNWIND_CONTINUE;
}

/* Stacks are sent only while the ring is less than half full, so that a burst of one program does
 * not displace samples of others. */
static _Bool has_space_for_stacks(void)
{
    return bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) <
           bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 2;
}

/* Whether unwinding may have ended because a mapping is missing: the process is not published yet,
 * or was published recently. */
static _Bool is_early(const struct sample_process *known, const struct sample_event *event)
{
    return !known ||
           ((event->stop == UNWIND_STOP_UNMAPPED || event->stop == UNWIND_STOP_FRAME_POINTER) &&
            event->time_ns - known->published_ns < SAMPLE_FRESH_NS);
}

/* Unwinds the user stack. Returns the interpreted frames; NULL: there are none. */
static __always_inline struct interpreter_reader *
unwind_program(__u32 slot, struct bpf_perf_event_data *interrupted, _Bool is_in_program,
               struct scratch *sample)
{
    struct sample_event *event = &sample->event;
    struct interpreter_reader *interpreted = 0;
    const struct unwind_mapping_list unknown = {};
    const struct unwind_mapping_list *list = &unknown;
    const __u32 process = event->process_id;
    event->stop = find_registers(interrupted, is_in_program, sample);
    if (event->stop)
        return 0;
    const struct sample_process *known = bpf_map_lookup_elem(&processes, &process);
    if (known && (known->started_ns == 0 || known->started_ns == event->started_ns)) {
        list = &known->list;
        if (known->interpreter.layout.groups != INTERPRETER_NONE)
            interpreted = interpreter_read_all(slot, &known->interpreter, thread_pointer());
    } else {
        known = 0;
    }
    sample->pc = sample->state.pc;
    unwind_begin(&sample->state, list, unwind_options);
    unwind_frames(slot, sample, interpreted);
    sample->is_early =
        !(unwind_options & UNWIND_OPTION_FP_ONLY) && !interpreted && is_early(known, event);
    return interpreted;
}

/* Appends the interpreted frames after all addresses. */
static void put_interpreted(struct sample_event *event,
                            const struct interpreter_reader *interpreted)
{
    __u64 first = (__u64)event->user_count + event->kernel_count;
    __u64 count = interpreted->count;
    if (first > SAMPLE_USER_FRAMES_MAX + SAMPLE_KERNEL_FRAMES_MAX)
        first = SAMPLE_USER_FRAMES_MAX + SAMPLE_KERNEL_FRAMES_MAX;
    if (count > INTERPRETED_FRAMES_MAX)
        count = INTERPRETED_FRAMES_MAX;
    if (bpf_probe_read_kernel((char *)event + SAMPLE_EVENT_HEAD_BYTES + first * 8,
                              (__u32)(count * sizeof(struct interpreted_frame)),
                              interpreted->frames) == 0)
        event->interpreted_count = (__u32)count;
}

/*
 * Appends a copy of the newest part of the stack after all addresses. When the agent reads the
 * sample, it knows the mappings of the new program, and unwinds the copy. The stack is read page by
 * page, because its end may be near, and because the newest page is not mapped before it is
 * written.
 */
static void put_stack(struct sample_event *event, const struct scratch *sample)
{
    const __u64 count = (__u64)event->user_count + event->kernel_count;
    if (count > SAMPLE_USER_FRAMES_MAX + SAMPLE_KERNEL_FRAMES_MAX)
        return;
    struct sample_stack *stack =
        (struct sample_stack *)((char *)event + SAMPLE_EVENT_HEAD_BYTES + count * 8);
    __u64 address = sample->state.leaf[UNWIND_REGISTER_SP], bytes = 0;
    stack->pc = sample->pc;
    stack->start = address;
    if (bpf_probe_read_kernel(stack->registers, sizeof(stack->registers), sample->state.leaf))
        return;
#pragma clang loop unroll(full)
    for (int i = 0; i < SAMPLE_STACK_PAGES; i++) {
        const __u64 piece = SAMPLE_STACK_PAGE_BYTES - (address & (SAMPLE_STACK_PAGE_BYTES - 1));
        const _Bool is_read =
            !bpf_probe_read_user(stack->bytes + bytes, (__u32)piece, (const void *)address);
        address += piece;
        if (is_read)
            bytes += piece;
        else if (bytes)
            break;
        else
            stack->start = address;
    }
    event->stack_bytes = (__u32)(SAMPLE_STACK_HEAD_BYTES + bytes);
}

/* Unwinds the kernel stack into the record, after the user frames. */
static void unwind_kernel(void *context, struct sample_event *event)
{
    __u64 first = event->user_count;
    if (first > SAMPLE_USER_FRAMES_MAX)
        first = SAMPLE_USER_FRAMES_MAX;
    const long bytes = bpf_get_stack(context, (char *)event + SAMPLE_EVENT_HEAD_BYTES + first * 8,
                                     SAMPLE_KERNEL_FRAMES_MAX * 8, 0);
    event->kernel_count = bytes > 0 ? (__u32)bytes / 8 : 0;
}

/* Writes the record to the ring; false: the ring is full. */
static _Bool send(struct scratch *sample)
{
    struct sample_event *event = &sample->event;
    __u64 bytes = sample_event_bytes(event);
    if (bytes > sizeof(*event))
        bytes = sizeof(*event);
    if (!bpf_ringbuf_output(&samples, event, bytes, ring_flags(sample, bytes)))
        return 1;
    COUNT(lost);
    tally_forget(event);
    return 0;
}

/* Whether the process is to be sampled. process: its number; 0: it is outside of the agent's PID
 * namespace and is not sampled. */
static _Bool is_wanted(__u32 process)
{
    return process && (!has_targets || bpf_map_lookup_elem(&targets, &process));
}

/* Whether the thread runs a program. A kernel thread does not, nor does one within execve: its user
 * registers are still those of the previous program, whose stack no longer exists. */
static _Bool has_program(struct task_struct *task)
{
    struct mm_struct *memory = BPF_CORE_READ(task, mm);
    return memory && BPF_CORE_READ(memory, start_code);
}

/* Fills the start of the current process and the name of the thread, where possible by direct reads
 * of the task, which need no helper call. */
static __always_inline void put_current(struct sample_event *event)
{
#if CPU_BEFORE_5_17
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct task_struct *leader = BPF_CORE_READ(task, group_leader);
    event->started_ns = BPF_CORE_READ(leader, start_boottime);
    bpf_get_current_comm(event->comm, sizeof(event->comm));
#else
    const struct task_struct *task = bpf_get_current_task_btf();
    event->started_ns = task->group_leader->start_boottime;
    const __u64 *name = (const __u64 *)task->comm;
    ((__u64 *)event->comm)[0] = name[0];
    ((__u64 *)event->comm)[1] = name[1];
#endif
}

/* Fills the sample of the current thread, except process_id, kind and amount, which the caller sets
 * before. interrupted: the context of the perf event, whose registers may be those of user code;
 * NULL: the thread leaves its CPU. context: that of the BPF program, for bpf_get_stack. */
static __always_inline void fill(__u32 slot, struct bpf_perf_event_data *interrupted, void *context,
                                 struct scratch *sample)
{
    const struct interpreter_reader *interpreted = 0;
    struct sample_event *event = &sample->event;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    const _Bool is_in_program = interrupted && is_of_program(&interrupted->regs);
    event->time_ns = bpf_ktime_get_ns();
    put_current(event);
    event->thread_id =
        agent_namespace ? number_in_namespace(task) : (__u32)bpf_get_current_pid_tgid();
    event->user_count = event->kernel_count = event->interpreted_count = event->stack_bytes = 0;
    event->key = 0;
    event->stop = UNWIND_CONTINUE;
    sample->is_early = 0;
    sample->state.list.generation = 0; /* set by unwind_begin if the mappings are known */
    if (is_in_program || has_program(task))
        interpreted = unwind_program(slot, interrupted, is_in_program, sample);
    if (!is_in_program)
        unwind_kernel(context, event);
    if (interpreted)
        put_interpreted(event, interpreted);
    if (sample->is_early && has_space_for_stacks())
        put_stack(event, sample);
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *context)
{
    const __u32 slot = SCRATCH_TICK;
    const __u64 numbers = bpf_get_current_pid_tgid();
    if ((__u32)numbers == 0) /* the idle task */
        return 0;
    struct scratch *sample = bpf_map_lookup_elem(&scratch, &slot);
    if (!sample)
        return 0;
    struct sample_event *event = &sample->event;
    event->process_id = agent_namespace
                            ? process_number((struct task_struct *)bpf_get_current_task())
                            : (__u32)(numbers >> 32);
    if (!event->process_id && !has_targets) /* targets are never foreign */
        COUNT(foreign);
    if (!is_wanted(event->process_id))
        return 0;
    event->amount = subsample_take(context->sample_period);
    if (!event->amount)
        return 0;
    event->kind = SAMPLE_TICK;
    fill(slot, context, context, sample);
    if (has_tallies && tally(event, sample_event_bytes(event), sample->state.list.generation))
        COUNT(tallied);
    else if (!send(sample))
        COUNT(lost_ticks);
    return 0;
}

#include "bpf/off_cpu.bpf.h"

/* Copies the entry of a forking process to its child. So the child of a target is sampled from its
 * first instruction on, and unwound by the mappings of its parent. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *context)
{
    const __u32 parent = process_number((struct task_struct *)context->args[0]);
    const __u32 child = process_number((struct task_struct *)context->args[1]);
    const __u8 yes = 1;
    if (parent == child || child == 0) /* a new thread, or outside of our PID namespace */
        return 0;
    if (has_targets && bpf_map_lookup_elem(&targets, &parent))
        bpf_map_update_elem(&targets, &child, &yes, BPF_ANY);
    const struct sample_process *known = bpf_map_lookup_elem(&processes, &parent);
    if (known) {
        const struct sample_process copy = {.started_ns = 0,
                                            .published_ns = known->published_ns,
                                            .list = known->list,
                                            .interpreter = known->interpreter};
        bpf_map_update_elem(&processes, &child, &copy, BPF_ANY);
    } else {
        bpf_map_delete_elem(&processes, &child); /* of an earlier process with this number */
    }
    return 0;
}

/*
 * Forgets the mappings of the program that a process has executed until now. The agent publishes
 * those of the new program in a moment; until then samples carry their stacks.
 *
 * execve renames the thread before it makes the first mapping. sched_process_exec would be too
 * late: it comes after the kernel's mappings, and the agent may have published them by then.
 */
SEC("raw_tp/task_rename")
int forget_program(struct bpf_raw_tracepoint_args *context)
{
    struct task_struct *task = (struct task_struct *)context->args[0];
    if (!BPF_CORE_READ(task, mm) || has_program(task))
        return 0;
    const __u32 process = process_number(task);
    bpf_map_delete_elem(&processes, &process);
    return 0;
}

/* The last thread of a process has ended, so its number may be reused. */
SEC("raw_tp/sched_process_exit")
int forget_process(struct bpf_raw_tracepoint_args *context)
{
    struct task_struct *task = (struct task_struct *)context->args[0];
    struct signal_struct *threads = BPF_CORE_READ(task, signal);
    if (BPF_CORE_READ(threads, live.counter))
        return 0;
    const __u32 process = process_number(task);
    bpf_map_delete_elem(&processes, &process);
    if (has_targets)
        bpf_map_delete_elem(&targets, &process);
    return 0;
}

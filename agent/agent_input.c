/*
 * Samples and process events arrive in different buffers. Before a sample is processed, the process
 * events up to its time are read and applied, so that its addresses are looked up in the mappings
 * of that time:
 *
 *   perf rings  -> agent_input_event  -> processes_apply
 *   ring buffer -> agent_input_sample -> perf_sideband_read_until(time of the sample)
 *                    TICK        add_tick:     [defer] [unwind] -> window_add
 *                    SWITCH_OUT  begin_off_cpu:        [unwind] -> off_cpu_begin
 *                    SWITCH_IN   off_cpu_end -> agent_input_off_cpu -> window_add_off_cpu
 *
 * Without privileges, samples are in the perf rings too: agent_input_unprivileged_sample.
 */
#include "agent/agent_internal.h"
#include "agent/interpreter/interpreter.h"
#include "agent/kernel/off_cpu.h"
#include "agent/kernel/perf_sideband.h"
#include "agent/process/process.h"
#include "agent/process/process_event.h"
#include "agent/process/processes.h"
#include "agent/unwind/unwind_failures.h"
#include "agent/unwind/unwind_names.h"
#include "agent/unwind/unwind_publisher.h"
#include "agent/unwind/user_unwinder.h"
#include "bpf/shared.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <stdio.h>

void agent_input_event(void *context, const struct process_event *event)
{
    struct agent *agent = context;
    if (event->kind == PROCESS_EVENT_LOST)
        agent->lost_events += event->lost_count;
    agent->event_ns = clock_monotonic_ns();
    processes_apply(agent->processes, event);
}

/* ---- unwinding ---- */

/* Records in which binary the stack ended, if it ended before its root. */
static void note_failure(struct agent *agent, const struct process *process,
                         const struct sample_event *event)
{
    const enum unwind_stop stop = (enum unwind_stop)event->stop;
    char text[64];
    const char *path = "[no mapping]";
    if (stop == UNWIND_CONTINUE || unwind_stop_is_complete(stop) || event->user_count == 0)
        return;
    const struct process_mapping *mapping =
        process_find_mapping(process, event->addresses[event->user_count - 1]);
    if (mapping && mapping->binary == BINARY_NONE) {
        /* JIT code may lack frame pointers, as QEMU's does. It has no file, so the stack is counted
         * for the program's name. */
        snprintf(text, sizeof(text), "[no file] of %s", process->name);
        path = text;
    } else if (mapping) {
        path = binaries_get(agent->binaries, mapping->binary)->path;
    }
    unwind_failures_add(agent->failures, stop, path);
}

static void count_stop(struct agent *agent, const struct sample_event *event)
{
    const size_t stop_count = sizeof(agent->stops) / sizeof(*agent->stops);
    agent->stops[event->stop < stop_count ? event->stop : 0]++;
}

/* The process of a sample; NULL: there are too many processes. Counts how its stack ended. */
static struct process *find_process(struct agent *agent, const struct sample_event *event)
{
    struct process *process =
        processes_find(agent->processes, event->process_id, event->started_ns);
    count_stop(agent, event);
    if (process)
        note_failure(agent, process, event);
    return process;
}

/*
 * Unwinds the stack that a sample carries. Samples carry stacks as long as the mappings of a new
 * program are not published: the kernel program cannot unwind them. By now the mappings are known,
 * so the process is published and its tables are built first. Returns the sample with the frames,
 * or event itself if the stack cannot be unwound.
 */
static const struct sample_event *unwind_copy(struct agent *agent, const struct sample_event *event)
{
    const struct sample_stack *stack = sample_stack_of(event);
    struct process *process =
        processes_find(agent->processes, event->process_id, event->started_ns);
    if (event->stack_bytes < SAMPLE_STACK_HEAD_BYTES || !event->user_count || !process)
        return event;
    unwind_publisher_publish_process(agent->publisher, process);
    unwind_publisher_build_process(agent->publisher, process);
    if (!process->has_list)
        return event;
    struct stack_copy copy = {
        .pc = stack->pc,
        .start = stack->start,
        .bytes = span_of(stack->bytes, event->stack_bytes - SAMPLE_STACK_HEAD_BYTES)};
    memcpy(copy.registers, stack->registers, sizeof(stack->registers));
    struct sample_event *unwound = agent->unwound;
    memcpy(unwound, event, SAMPLE_EVENT_HEAD_BYTES);
    const __u64 *kernel = event->addresses + event->user_count;
    memcpy(unwound->addresses, event->addresses, event->user_count * sizeof(*kernel));
    user_unwinder_event(agent->unwinder, &process->list, &copy, unwound);
    /* The number of user frames has changed, and kernel frames follow them. */
    memcpy(unwound->addresses + unwound->user_count, kernel, event->kernel_count * sizeof(*kernel));
    unwound->stack_bytes = 0;
    return unwound;
}

/* ---- samples ---- */

static void add_to_windows(struct agent *agent, struct process *process,
                           const struct sample_event *event)
{
    window_add(agent->window, process, event);
    if (agent->live)
        window_add(agent->live, process, event);
}

/* While the counts of a phase are collected, first samples of the next phase arrive already. They
 * are kept for the next window, which gets their counts. */
static bool defer_sample(struct agent *agent, const struct sample_event *event)
{
    if (!agent->is_collecting || !event->key || (event->key & 1) == agent->ended_phase)
        return false;
    const size_t bytes = sample_event_bytes(event);
    struct deferred_sample *deferred = mem_alloc(sizeof(*deferred) + bytes, 1);
    *deferred = (struct deferred_sample){.next = NULL};
    memcpy(deferred->event, event, bytes);
    *agent->deferred_end = deferred;
    agent->deferred_end = &deferred->next;
    return true;
}

static void add_tick(struct agent *agent, const struct sample_event *event)
{
    if (defer_sample(agent, event))
        return;
    if (event->stack_bytes && agent->unwinder)
        event = unwind_copy(agent, event);
    struct process *process = find_process(agent, event);
    if (process)
        add_to_windows(agent, process, event);
}

/* Reads the names of the interpreted functions now: they are in the memory of the program, which
 * may have ended when the interval has. */
static void read_interpreted_names(struct agent *agent, const struct sample_event *event)
{
    struct process *process =
        event->interpreted_count
            ? processes_find(agent->processes, event->process_id, event->started_ns)
            : NULL;
    const struct interpreted_frame *frames = sample_interpreted(event);
    struct interpreter_name ignored;
    if (!process || !interpreter_is_ready(process->interpreter))
        return;
    for (uint32_t i = 0; i < event->interpreted_count; i++)
        (void)interpreter_find_name(process->interpreter, &frames[i], &ignored);
}

static void begin_off_cpu(struct agent *agent, const struct sample_event *event)
{
    if (event->stack_bytes && agent->unwinder)
        event = unwind_copy(agent, event);
    read_interpreted_names(agent, event);
    off_cpu_begin(agent->off_cpu, event);
}

void agent_input_sample(void *context, const struct sample_event *event)
{
    struct agent *agent = context;
    perf_sideband_read_until(agent->sideband, (int64_t)event->time_ns);
    if (event->kind == SAMPLE_TICK)
        add_tick(agent, event);
    else if (event->kind == SAMPLE_SWITCH_OUT)
        begin_off_cpu(agent, event);
    else
        off_cpu_end(agent->off_cpu, event);
}

void agent_input_off_cpu(void *context, const struct sample_event *event, int64_t duration_ns)
{
    struct agent *agent = context;
    struct process *process = find_process(agent, event);
    if (process)
        window_add_off_cpu(agent->window, process, event, duration_ns);
    if (process && agent->live)
        window_add_off_cpu(agent->live, process, event, duration_ns);
}

void agent_input_tally(void *context, uint64_t key, const struct sample_tally *tally)
{
    struct agent *agent = context;
    window_add_tally(agent->window, key, tally);
}

void agent_input_deferred(struct agent *agent)
{
    struct deferred_sample *deferred = agent->deferred;
    agent->deferred = NULL;
    agent->deferred_end = &agent->deferred;
    while (deferred) {
        struct deferred_sample *next = deferred->next;
        agent_input_sample(agent, (const struct sample_event *)deferred->event);
        mem_free(deferred);
        deferred = next;
    }
}

/* The kernel itself took this sample, with a stack by frame pointers. copy is unwound here. */
void agent_input_unprivileged_sample(void *context, struct sample_event *event,
                                     const struct stack_copy *copy)
{
    struct agent *agent = context;
    struct process *process = processes_find(agent->processes, event->process_id, 0);
    agent->unprivileged_samples++;
    if (!process)
        return;
    static_assert(sizeof(event->comm) == sizeof(process->name), "TASK_COMM_LEN of the kernel");
    memcpy(event->comm, process->name, sizeof(event->comm));
    /* Every mapping up to the time of the sample is known, so building all tables now gives this
     * sample complete ones. */
    while (agent->publisher && unwind_publisher_publish(agent->publisher))
        ;
    if (copy && process->has_list)
        user_unwinder_event(agent->unwinder, &process->list, copy, event);
    count_stop(agent, event);
    note_failure(agent, process, event);
    add_to_windows(agent, process, event);
}

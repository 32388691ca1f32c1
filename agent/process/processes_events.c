#include "agent/process/process_event.h"
#include "agent/process/process_file.h"
#include "agent/process/processes_internal.h"
#include "lib/base/clock.h"

#include <stdio.h>

enum { MAP_EVENTS_MAX = 256 }; /* per process and second; more events cause a scan of /proc/PID */

/* Whether a further map event exceeds MAP_EVENTS_MAX. The start of a program takes about a hundred
 * mappings. Without the limit, a program that maps and unmaps a file in a loop would make the agent
 * read that file each time, and events of other processes would be lost. */
static bool exceeds_map_events(struct process *process, int64_t time_ns)
{
    if (time_ns - process->map_second_ns >= CLOCK_NS_PER_S) {
        process->map_second_ns = time_ns;
        process->map_event_count = 0;
    }
    return process->map_event_count++ >= MAP_EVENTS_MAX;
}

static void apply_map(struct processes *processes, const struct process_event *event)
{
    struct process *process = processes_get_or_add(processes, event->process_id);
    if (!process)
        return;
    if (exceeds_map_events(process, event->time_ns)) {
        process->is_scan_due = true;
        return;
    }
    const struct binary_source source = {.process_id = process->shown_id,
                                         .owner = processes_counted_owner(processes, process),
                                         .start = event->start,
                                         .limit = event->start + event->bytes,
                                         .path = event->path,
                                         .build_id =
                                             span_of(event->build_id, event->build_id_bytes),
                                         .inode = event->inode,
                                         .device_major = event->device_major,
                                         .device_minor = event->device_minor};
    processes_add_mapping(processes, process, &source, event->file_offset, false);
    processes_notify_change(processes, process);
}

static void apply_name(struct processes *processes, const struct process_event *event)
{
    struct process *process = processes_get_or_add(processes, event->process_id);
    if (!process)
        return;
    if (event->is_exec) {
        /* The new program has one thread and no mappings: everything that was derived from the old
         * program, its threads or its mappings is reset. */
        processes_drop_program(processes, process);
        process->is_known = true;
        process->is_kernel_thread = false;
        process->owner = 0;
        process->shown_id = process->process_id;
        process->ended_ns = 0; /* exec in another thread ends the first one */
        process->has_threads = false;
        process->is_scan_due = process->has_refused = false;
        process->left_out = process->counted_left_out = 0;
        process->map_event_count = 0;
        processes_notify_change(processes, process);
    }
    if (event->process_id == event->thread_id)
        snprintf(process->name, sizeof(process->name), "%.*s", SPAN_PRINT(event->name));
}

static void apply_fork(struct processes *processes, const struct process_event *event)
{
    struct process **slot = processes_slot(processes, event->process_id);
    if (event->process_id != event->thread_id) {
        if (*slot)
            (*slot)->has_threads = true;
        return;
    }
    if (*slot) /* the number is reused */
        processes_forget(processes, slot);
    struct process *process = processes_get_or_add(processes, event->process_id);
    const struct process *parent = *processes_slot(processes, event->parent_id);
    if (!process)
        return;
    process->parent_id = event->parent_id;
    process->is_target = parent && parent->is_target;
    if (parent && parent->is_known) {
        process->is_known = true;
        process->is_kernel_thread = parent->is_kernel_thread;
        process->is_scan_due = parent->is_scan_due;
        process->has_refused = parent->has_refused;
        /* A child has the owner of its parent if that is a user. A process of root is its own
         * owner, which is determined when it is needed (0). */
        process->owner = process_file_is_user(parent->owner) ? parent->owner : 0;
        snprintf(process->name, sizeof(process->name), "%s", parent->name);
        processes_copy_mappings(processes, process, parent);
        process->unopened_ns = parent->unopened_ns;
        process->unopened_pause_ns = parent->unopened_pause_ns;
        if (processes->options.on_fork)
            processes->options.on_fork(processes->options.context, process, parent);
        processes_notify_change(processes, process);
    }
}

/* A process can outlive its first thread. Its files are then visible through another thread in
 * /proc, and a scan opens those that failed before. */
static void apply_exit(struct processes *processes, const struct process_event *event)
{
    struct process *process = *processes_slot(processes, event->process_id);
    if (!process || event->process_id != event->thread_id)
        return;
    process->ended_ns = event->time_ns;
    if (process->has_threads && process->is_known && processes_find_other_thread(process))
        processes_scan_soon(processes, process, clock_monotonic_ns());
}

/* Whether the event concerns a process that is kept. */
static bool is_relevant(struct processes *processes, const struct process_event *event)
{
    if (!processes->options.has_targets || event->kind == PROCESS_EVENT_LOST)
        return true;
    const bool is_fork = event->kind == PROCESS_EVENT_FORK;
    const uint32_t process_id = is_fork ? event->parent_id : event->process_id;
    const struct process *process = *processes_slot(processes, process_id);
    /* If the child's number belonged to a target before, the event is relevant, so that the old
     * target is forgotten. */
    const struct process *old = is_fork ? *processes_slot(processes, event->process_id) : NULL;
    return (process && process->is_target) || (old && old->is_target);
}

void processes_apply(struct processes *processes, const struct process_event *event)
{
    if (!is_relevant(processes, event))
        return;
    switch (event->kind) {
    case PROCESS_EVENT_MAP:
        apply_map(processes, event);
        break;
    case PROCESS_EVENT_NAME:
        apply_name(processes, event);
        break;
    case PROCESS_EVENT_FORK:
        apply_fork(processes, event);
        break;
    case PROCESS_EVENT_EXIT:
        apply_exit(processes, event);
        break;
    case PROCESS_EVENT_LOST:
        processes->is_scan_due = true;
        processes_scan_after_loss(processes, clock_monotonic_ns());
        break;
    }
}

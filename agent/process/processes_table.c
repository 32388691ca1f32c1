#include "agent/process/processes_internal.h"
#include "lib/base/mem.h"

enum { PROCESSES_MAX = 65536 };

struct process **processes_slot(struct processes *processes, uint32_t process_id)
{
    struct process **slot = &processes->buckets[process_id % PROCESSES_BUCKET_COUNT];
    while (*slot && (*slot)->process_id != process_id)
        slot = &(*slot)->next;
    return slot;
}

struct process *processes_get_or_add(struct processes *processes, uint32_t process_id)
{
    struct process **slot = processes_slot(processes, process_id);
    if (*slot)
        return *slot;
    if (processes->counts.processes == PROCESSES_MAX) {
        processes->counts.refused_processes++;
        return NULL;
    }
    struct process *process = mem_new(struct process, 1);
    *process =
        (struct process){.process_id = process_id, .shown_id = process_id, .program = BINARY_NONE};
    processes->counts.processes++;
    return *slot = process;
}

void processes_notify_change(struct processes *processes, struct process *process)
{
    if (processes->options.on_change)
        processes->options.on_change(processes->options.context, process);
}

uint64_t processes_counted_owner(const struct processes *processes, struct process *process)
{
    return binaries_are_counted(processes->binaries) ? process_owner(process) : 0;
}

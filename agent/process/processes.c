#include "agent/process/processes.h"

#include "agent/process/processes_internal.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

#include <unistd.h>

#define KEPT_AFTER_END_NS (3 * CLOCK_NS_PER_S)

struct processes *processes_create(struct binaries *binaries,
                                   const struct processes_options *options)
{
    struct processes *processes = mem_new(struct processes, 1);
    processes->binaries = binaries;
    processes->options = *options;
    const long ticks = sysconf(_SC_CLK_TCK);
    processes->ns_per_tick = (uint64_t)CLOCK_NS_PER_S / (uint64_t)(ticks > 0 ? ticks : 100);
    return processes;
}

void processes_forget(struct processes *processes, struct process **slot)
{
    struct process *process = *slot;
    if (processes->options.on_forget)
        processes->options.on_forget(processes->options.context, process);
    *slot = process->next;
    processes_drop_program(processes, process);
    mem_free(process->mappings);
    mem_free(process);
    processes->counts.processes--;
}

void processes_destroy(struct processes *processes)
{
    if (!processes)
        return;
    for (uint32_t i = 0; i < PROCESSES_BUCKET_COUNT; i++) {
        while (processes->buckets[i])
            processes_forget(processes, &processes->buckets[i]);
    }
    mem_free(processes);
}

/* ---- samples ---- */

static bool is_same_start(const struct processes *processes, const struct process *process,
                          uint64_t started_ns)
{
    if (process->started_ns == 0 || started_ns == 0)
        return true;
    if (process->is_start_exact)
        return process->started_ns == started_ns;
    /* /proc cuts the start time to whole ticks. */
    return started_ns >= process->started_ns &&
           started_ns - process->started_ns < 2 * processes->ns_per_tick;
}

struct process *processes_find(struct processes *processes, uint32_t process_id,
                               uint64_t started_ns)
{
    struct process **slot = processes_slot(processes, process_id);
    if (*slot && !is_same_start(processes, *slot, started_ns))
        processes_forget(processes, slot);
    struct process *process = processes_get_or_add(processes, process_id);
    if (!process)
        return NULL;
    if (started_ns) {
        process->started_ns = started_ns;
        process->is_start_exact = true;
    }
    if (!process->is_known)
        processes_scan_process(processes, process);
    return process;
}

const struct process *processes_get(struct processes *processes, uint32_t process_id)
{
    return *processes_slot(processes, process_id);
}

const struct process_mapping *processes_find_mapping(struct processes *processes,
                                                     struct process *process, uint64_t address)
{
    const struct process_mapping *mapping = process_find_mapping(process, address);
    const int64_t now_ns = clock_monotonic_ns();
    if (mapping || process_has_ended(process) || now_ns < process->scan_ns)
        return mapping;
    /* mprotect(PROT_EXEC) of a mapped file causes no event. */
    processes_scan_soon(processes, process, now_ns);
    return process_find_mapping(process, address);
}

void processes_sweep(struct processes *processes, int64_t now_ns)
{
    processes_scan_after_loss(processes, now_ns);
    for (uint32_t i = 0; i < PROCESSES_BUCKET_COUNT; i++) {
        struct process **slot = &processes->buckets[i];
        while (*slot) {
            const int64_t ended_ns = (*slot)->ended_ns;
            if (ended_ns && now_ns - ended_ns > KEPT_AFTER_END_NS &&
                processes_has_no_threads(*slot, now_ns)) {
                processes_forget(processes, slot);
                continue;
            }
            slot = &(*slot)->next;
        }
    }
    processes_scan_waiting(processes, now_ns);
}

void processes_count(const struct processes *processes, struct processes_counts *ret_counts)
{
    *ret_counts = processes->counts;
}

void processes_each(struct processes *processes,
                    void (*visit)(void *context, struct process *process), void *context)
{
    for (uint32_t i = 0; i < PROCESSES_BUCKET_COUNT; i++) {
        for (struct process *process = processes->buckets[i]; process; process = process->next)
            visit(context, process);
    }
}

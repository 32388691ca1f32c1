#include "agent/agent_internal.h"
#include "agent/kernel/kernel_program.h"
#include "agent/kernel/off_cpu.h"
#include "agent/process/processes.h"
#include "agent/unwind/unwind_failures.h"
#include "agent/unwind/unwind_names.h"
#include "agent/unwind/unwind_publisher.h"

#include <inttypes.h>
#include <string.h>

static void count_program(const struct agent *agent, struct kernel_program_counts *ret_counters,
                          struct agent_counts *counts)
{
    const struct kernel_program *program = agent->program;
    *ret_counters = (struct kernel_program_counts){.samples = agent->unprivileged_samples};
    counts->is_unprivileged = !program;
    counts->event = agent->options.event;
    if (!program)
        return;
    kernel_program_count(program, ret_counters);
    counts->has_bounded_loops = !kernel_program_has_loop(program);
    counts->loop_error = kernel_program_loop_error(program);
}

void agent_count(const struct agent *agent, struct agent_counts *ret_counts)
{
    struct kernel_program_counts counters;
    struct processes_counts processes;
    struct agent_counts counts = {.lost_events = agent->lost_events,
                                  .left_out_names = agent->left_out_names,
                                  .restarted_cpus = agent->restarted_cpus,
                                  .unsampled_cpus = agent->unsampled_cpus};
    count_program(agent, &counters, &counts);
    processes_count(agent->processes, &processes);
    binaries_count(agent->binaries, &counts.binaries, &counts.unread_binaries);
    counts.samples = counters.samples;
    counts.tallied = counters.tallied;
    counts.off_cpu = counters.off_cpu;
    counts.lost_samples = counters.lost;
    counts.foreign = counters.foreign;
    counts.kernel_frames = counters.kernel_frames;
    counts.user_frames = counters.user_frames;
    counts.interpreted_frames = counters.interpreted_frames;
    interpreters_count(agent->interpreters, &counts.interpreters);
    counts.processes = processes.processes;
    counts.mappings = processes.mappings;
    counts.refused_processes = processes.refused_processes;
    counts.refused_mappings = processes.refused_mappings;
    counts.refused_names = agent->jit_budget.refused;
    if (agent->off_cpu)
        counts.refused_off_cpu = counters.refused_off_cpu + off_cpu_refused(agent->off_cpu);
    if (agent->publisher) {
        struct unwind_publisher_counts publisher;
        unwind_publisher_count(agent->publisher, &publisher);
        counts.tables = publisher.tables;
        counts.failed_tables = publisher.failed_tables;
        counts.shard_bytes = publisher.shard_bytes;
        counts.refused_tables = publisher.refused + publisher.refused_tables;
    }
    counts.refused = counts.refused_processes + counts.refused_mappings + counts.refused_names +
                     counts.refused_off_cpu + counts.refused_tables;
    counts.unwanted = window_unwanted(agent->window);
    counts.memory_bytes = agent->memory_bytes;
    counts.is_short_of_memory = agent->is_short_of_memory;
    counts.short_seconds = agent->short_seconds;
    memcpy(counts.stops, agent->stops, sizeof(counts.stops));
    *ret_counts = counts;
}

/* The most frequent reason for an incomplete stack that is not listed yet; 0: none is left. */
static uint32_t next_stop(const struct agent_counts *counts, const bool *is_listed)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < UNWIND_STOP_COUNT; i++) {
        if (!is_listed[i] && !unwind_stop_is_complete((enum unwind_stop)i) &&
            counts->stops[i] > (best ? counts->stops[best] : 0))
            best = i;
    }
    return best;
}

uint64_t agent_append_stops(const struct agent_counts *counts, struct buf *text)
{
    bool is_listed[UNWIND_STOP_COUNT] = {0};
    uint64_t sum = 0;
    for (uint32_t i = next_stop(counts, is_listed); i; i = next_stop(counts, is_listed)) {
        is_listed[i] = true;
        buf_printf(text, "%s%" PRIu64 " %s", sum ? ", " : "", (uint64_t)counts->stops[i],
                   unwind_stop_name((enum unwind_stop)i));
        sum += counts->stops[i];
    }
    return sum;
}

void agent_append_failure_sites(const struct agent *agent, uint32_t limit, struct buf *text)
{
    unwind_failures_append(agent->failures, limit, text);
}

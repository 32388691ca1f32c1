/*
 * The memory limit covers the resident memory of this process and the kernel memory of unwind
 * tables, which a memory cgroup counts for the agent as well. Example for a limit of 200 MiB and 80
 * MiB resident: tables may use 3/4 of the remaining 120 MiB, 90 MiB. The rest is reserved for the
 * growth of the process within a second.
 *
 * Above the limit the agent saves memory before the kernel kills it: windows are sent every second,
 * no table is built, and no new JIT names are read.
 */
#include "agent/agent_internal.h"
#include "agent/kernel/kernel_program.h"
#include "agent/process/procfs_file.h"
#include "agent/unwind/unwind_publisher.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <unistd.h>

#define NAMES_MAX_BYTES (UINT64_C(64) << 20)
enum { STATM_MAX_BYTES = 4096 };

uint64_t agent_memory_name_bytes(const struct agent *agent)
{
    const uint64_t limit_bytes = agent->options.memory_limit_bytes;
    return limit_bytes && limit_bytes / 4 < NAMES_MAX_BYTES ? limit_bytes / 4 : NAMES_MAX_BYTES;
}

/* The second number of /proc/self/statm is the number of resident pages, which include mapped
 * tables. 0: it cannot be read. */
static uint64_t read_resident_bytes(void)
{
    struct span text, first, second, rest;
    struct err ignored;
    uint64_t pages = 0;
    buf_auto statm;
    buf_init(&statm, STATM_MAX_BYTES);
    if (procfs_file_read("/proc/self/statm", &statm, &ignored))
        return 0;
    text = buf_span(&statm);
    if (!span_split(text, ' ', &first, &rest) || !span_split(rest, ' ', &second, &rest) ||
        !span_parse_u64(second, &pages))
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t kernel_table_bytes(const struct agent *agent)
{
    struct unwind_publisher_counts counts = {0};
    if (agent->program && agent->publisher)
        unwind_publisher_count(agent->publisher, &counts);
    return counts.shard_bytes;
}

void agent_memory_limit_tables(struct agent *agent)
{
    const uint64_t limit_bytes = agent->options.memory_limit_bytes;
    agent->memory_bytes = read_resident_bytes();
    if (limit_bytes && agent->program && agent->publisher)
        unwind_publisher_limit(agent->publisher, limit_bytes > agent->memory_bytes
                                                     ? (limit_bytes - agent->memory_bytes) / 4 * 3
                                                     : 0);
}

void agent_memory_watch(struct agent *agent)
{
    const uint64_t limit_bytes = agent->options.memory_limit_bytes;
    agent_memory_limit_tables(agent);
    agent->is_short_of_memory =
        limit_bytes && agent->memory_bytes + kernel_table_bytes(agent) > limit_bytes;
    agent->is_early_due = agent->is_short_of_memory;
    agent->jit_budget.is_closed = agent->is_short_of_memory;
    if (agent->is_short_of_memory)
        mem_trim();
    if (agent->publisher)
        unwind_publisher_pause(agent->publisher, agent->is_short_of_memory);
}

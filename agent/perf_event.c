#include "agent/perf_event.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int open_event(const struct perf_event_attr *attributes, uint32_t cpu)
{
    return (int)syscall(SYS_perf_event_open, attributes, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int perf_event_open_sampler(uint32_t cpu, uint32_t hz, enum event_kind kind)
{
    const bool is_counted = event_kind_is_thinned(kind);
    const struct perf_event_attr attributes = {
        .size = sizeof(attributes),
        .type = event_facts(kind)->perf_type,
        .config = event_facts(kind)->perf_config,
        .sample_freq = is_counted ? 1 : hz,
        .freq = !is_counted,
        .exclude_idle = 1,
        .exclude_hv = 1,
    };
    return open_event(&attributes, cpu);
}

int perf_event_open_side_band(uint32_t cpu, bool has_build_ids)
{
    struct perf_event_attr attributes = {
        .size = sizeof(attributes),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .watermark = 1,
        /* At once: what a new program has mapped has to be known before its first sample. */
        .wakeup_watermark = 1,
    };
    attributes.build_id = has_build_ids;
    return open_event(&attributes, cpu);
}

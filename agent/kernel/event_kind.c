#include "agent/kernel/event_kind.h"

#include <linux/perf_event.h>
#include <string.h>

static const struct event_facts kinds[EVENT_KIND_COUNT] = {
    [EVENT_CPU] = {"cpu", "cpu", "nanoseconds", "kernel's clock", false, PERF_TYPE_SOFTWARE,
                   PERF_COUNT_SW_CPU_CLOCK},
    [EVENT_CPU_CLOCK] = {"cpu-clock", "cpu", "nanoseconds", "kernel's clock", false,
                         PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    [EVENT_CYCLES] = {"cycles", "cycles", "count", "processor's cycle counter", true,
                      PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [EVENT_INSTRUCTIONS] = {"instructions", "instructions", "count",
                            "processor's counter of instructions", true, PERF_TYPE_HARDWARE,
                            PERF_COUNT_HW_INSTRUCTIONS},
    [EVENT_CACHE_MISSES] = {"cache-misses", "cache_misses", "count",
                            "processor's counter of cache misses", true, PERF_TYPE_HARDWARE,
                            PERF_COUNT_HW_CACHE_MISSES},
    [EVENT_PAGE_FAULTS] = {"page-faults", "page_faults", "count", "kernel's counter of page faults",
                           false, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    [EVENT_CONTEXT_SWITCHES] = {"context-switches", "context_switches", "count",
                                "kernel's counter of context switches", false, PERF_TYPE_SOFTWARE,
                                PERF_COUNT_SW_CONTEXT_SWITCHES},
};

const struct event_facts *event_facts(enum event_kind kind)
{
    return &kinds[kind];
}

bool event_kind_find(const char *name, enum event_kind *ret_kind)
{
    for (uint32_t i = 0; i < EVENT_KIND_COUNT; i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            *ret_kind = (enum event_kind)i;
            return true;
        }
    }
    return false;
}

#include "agent/kernel/perf_event.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { EVERYBODY = -1, OURSELVES = 0, TIME_READS_MAX = 1000 };

static int open_event(const struct perf_event_attr *attributes, int thread_id, uint32_t cpu)
{
    return (int)syscall(SYS_perf_event_open, attributes, thread_id, (int)cpu, -1,
                        PERF_FLAG_FD_CLOEXEC);
}

int perf_event_open_sampler(uint32_t cpu, uint32_t hz, enum event_kind kind)
{
    const bool is_subsampled = event_kind_is_subsampled(kind);
    const struct perf_event_attr attributes = {
        .size = sizeof(attributes),
        .type = event_facts(kind)->perf_type,
        .config = event_facts(kind)->perf_config,
        /* Without .freq this is sample_period (a union): 1 is every occurrence. */
        .sample_freq = is_subsampled ? 1 : hz,
        .freq = !is_subsampled,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
        .exclude_idle = 1,
        .exclude_hv = 1,
    };
    return open_event(&attributes, EVERYBODY, cpu);
}

int perf_event_open_sideband(uint32_t cpu, bool has_build_ids)
{
    struct perf_event_attr attributes = {
        .size = sizeof(attributes),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .watermark = 1,
        /* Wakes the agent at once: the mappings of a new program must be known before its first
           sample. */
        .wakeup_watermark = 1,
    };
    attributes.build_id = has_build_ids;
    return open_event(&attributes, EVERYBODY, cpu);
}

static bool read_enabled_time(int fd, uint64_t *ret_ns)
{
    uint64_t values[2]; /* the count, and the time; see read_format */
    const bool is_read = read(fd, values, sizeof(values)) == sizeof(values);
    if (is_read)
        *ret_ns = values[1];
    return is_read;
}

bool perf_event_is_alive(int fd)
{
    uint64_t first_ns, now_ns;
    bool is_read = read_enabled_time(fd, &first_ns);
    /* Two reads suffice, unless the kernel's clock has large steps. */
    for (int i = 0; is_read && i < TIME_READS_MAX; i++) {
        is_read = read_enabled_time(fd, &now_ns);
        if (is_read && now_ns != first_ns)
            return true;
    }
    return false;
}

int perf_event_open_own_ring(uint32_t cpu, uint32_t watermark_bytes)
{
    const struct perf_event_attr attributes = {
        .size = sizeof(attributes),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .watermark = 1,
        .wakeup_watermark = watermark_bytes,
    };
    return open_event(&attributes, OURSELVES, cpu);
}

#ifdef __aarch64__
/* x0 to x30, sp, pc. */
#define REGISTERS_MASK ((UINT64_C(1) << 33) - 1)

uint32_t perf_event_register(uint32_t i)
{
    return i == 32 ? PERF_EVENT_REGISTER_PC : i;
}
#else
/* As in asm/perf_regs.h: ax bx cx dx si di bp sp ip, r8 to r15. */
#define REGISTERS_MASK UINT64_C(0xff01ff)

uint32_t perf_event_register(uint32_t i)
{
    /* DWARF numbers, in the order of the mask. */
    static const uint32_t first[] = {0, 3, 2, 1, 4, 5, 6, 7, PERF_EVENT_REGISTER_PC};
    return i < 9 ? first[i] : i - 1;
}
#endif

/* The number of bytes to copy of each stack, so that a CPU writes at most about 4 MB a second. 0,
 * above 1,000 Hz: no copies. */
static uint32_t stack_bytes(uint32_t hz)
{
    return hz <= 100 ? 16 << 10 : hz <= 500 ? 8 << 10 : hz <= 1000 ? 4 << 10 : 0;
}

int perf_event_open_own(uint32_t thread_id, uint32_t cpu, const struct perf_event_own *wanted)
{
    struct perf_event_attr attributes = {
        .size = sizeof(attributes),
        .type = event_facts(wanted->kind)->perf_type,
        .config = event_facts(wanted->kind)->perf_config,
        .sample_freq = wanted->hz,
        .freq = 1,
        .sample_type =
            PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .exclude_callchain_kernel = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
    };
    attributes.build_id = wanted->has_build_ids;
    attributes.sample_stack_user = wanted->has_no_stacks ? 0 : stack_bytes(wanted->hz);
    if (attributes.sample_stack_user) {
        attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attributes.sample_regs_user = REGISTERS_MASK;
    }
    return open_event(&attributes, (int)thread_id, cpu);
}

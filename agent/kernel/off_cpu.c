/*
 * The off-CPU interval of a thread lasts from its SAMPLE_SWITCH_OUT to its SAMPLE_SWITCH_IN
 * (bpf/shared.h). It is reported in parts if windows end meanwhile (off_cpu_cut):
 *
 *   SWITCH_OUT    cut           cut           SWITCH_IN
 *    |-------------|-------------|-------------|
 *      reported 1    reported 2    reported 3
 *
 * An interval is not reported before its length reaches min_ns. The first reported part begins at
 * SWITCH_OUT, even if windows have ended since then. The `amount` of a SWITCH_IN is time_ns of its
 * SWITCH_OUT. A SWITCH_IN whose amount differs from the start of the open interval is ignored: its
 * SWITCH_OUT was lost, or dropped by off_cpu_begin.
 */
#include "agent/kernel/off_cpu.h"

#include "bpf/shared.h"
#include "lib/base/mem.h"

#include <string.h>

enum { BUCKETS = 1 << 14, BYTES_MAX = 64 << 20 };

struct interval {
    struct interval *next;
    int64_t since_ns;            /* end of what was reported, or start of the interval */
    int64_t reported_ns;         /* the length of what was reported */
    size_t bytes;                /* size of event */
    struct sample_event event[]; /* without the copied stack: do not use sample_stack_of */
};

struct off_cpu {
    int64_t min_ns;
    off_cpu_visit *visit;
    void *context;
    uint64_t bytes; /* sizes of the events of all open intervals */
    uint64_t refused;
    struct interval *buckets[BUCKETS]; /* by thread number */
};

struct off_cpu *off_cpu_create(int64_t min_ns, off_cpu_visit *visit, void *context)
{
    struct off_cpu *off_cpu = mem_new(struct off_cpu, 1);
    off_cpu->min_ns = min_ns;
    off_cpu->visit = visit;
    off_cpu->context = context;
    return off_cpu;
}

void off_cpu_destroy(struct off_cpu *off_cpu)
{
    if (!off_cpu)
        return;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct interval *interval = off_cpu->buckets[i], *next; interval; interval = next) {
            next = interval->next;
            mem_free(interval);
        }
    }
    mem_free(off_cpu);
}

static struct interval **find_interval(struct off_cpu *off_cpu, uint32_t thread_id)
{
    struct interval **at = &off_cpu->buckets[thread_id % BUCKETS];
    while (*at && (*at)->event->thread_id != thread_id)
        at = &(*at)->next;
    return at;
}

static void forget_interval(struct off_cpu *off_cpu, struct interval **at)
{
    struct interval *interval = *at;
    *at = interval->next;
    off_cpu->bytes -= interval->bytes;
    mem_free(interval);
}

void off_cpu_begin(struct off_cpu *off_cpu, const struct sample_event *event)
{
    struct interval **at = find_interval(off_cpu, event->thread_id);
    const size_t bytes = sample_event_bytes(event) - event->stack_bytes;
    if (*at) /* the SWITCH_IN of the previous interval was lost */
        forget_interval(off_cpu, at);
    if (off_cpu->bytes + bytes > BYTES_MAX) {
        off_cpu->refused++;
        return;
    }
    struct interval *interval = mem_alloc(1, sizeof(struct interval) + bytes);
    *interval = (struct interval){.since_ns = (int64_t)event->time_ns, .bytes = bytes, .next = *at};
    memcpy(interval->event, event, bytes);
    off_cpu->bytes += bytes;
    *at = interval;
}

static void report_until(struct off_cpu *off_cpu, struct interval *interval, int64_t until_ns)
{
    const int64_t off_cpu_ns = until_ns - interval->since_ns;
    if (off_cpu_ns <= 0 || interval->reported_ns + off_cpu_ns < off_cpu->min_ns)
        return;
    off_cpu->visit(off_cpu->context, interval->event, off_cpu_ns);
    interval->reported_ns += off_cpu_ns;
    interval->since_ns = until_ns;
}

void off_cpu_end(struct off_cpu *off_cpu, const struct sample_event *resume)
{
    struct interval **at = find_interval(off_cpu, resume->thread_id);
    if (!*at || (*at)->event->time_ns != resume->amount)
        return;
    report_until(off_cpu, *at, (int64_t)resume->time_ns);
    forget_interval(off_cpu, at);
}

void off_cpu_cut(struct off_cpu *off_cpu, int64_t now_ns)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct interval *interval = off_cpu->buckets[i]; interval; interval = interval->next)
            report_until(off_cpu, interval, now_ns);
    }
}

uint64_t off_cpu_refused(const struct off_cpu *off_cpu)
{
    return off_cpu->refused;
}

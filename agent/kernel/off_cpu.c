/*
 * The off-CPU interval of a thread, from its SAMPLE_WAIT to its SAMPLE_RESUME (bpf/shared.h), is
 * reported in parts if windows end meanwhile (off_cpu_cut):
 *
 *   WAIT          cut           cut           RESUME
 *    |-------------|-------------|-------------|
 *      reported 1    reported 2    reported 3
 *
 * Nothing of an interval is reported before its length so far reaches min_ns, and the first part
 * that is reported begins at WAIT, even if windows have ended since then. The `amount` of a RESUME
 * is time_ns of its WAIT. A RESUME whose amount is not the time of the open interval is ignored:
 * its WAIT was lost, or dropped by off_cpu_begin.
 */
#include "agent/kernel/off_cpu.h"

#include "bpf/shared.h"
#include "lib/base/mem.h"

#include <string.h>

enum { BUCKETS = 1 << 14, BYTES_MAX = 64 << 20 };

struct wait {
    struct wait *next;
    int64_t since_ns;            /* end of what was reported, or begin of the interval */
    int64_t reported_ns;         /* the length of what was reported */
    size_t bytes;                /* size of event */
    struct sample_event event[]; /* without the copied stack: do not use sample_stack_of */
};

struct off_cpu {
    int64_t min_ns;
    off_cpu_visit *visit;
    void *context;
    uint64_t bytes; /* sizes of the events of all waiting threads */
    uint64_t refused;
    struct wait *buckets[BUCKETS]; /* by thread number */
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
        for (struct wait *wait = off_cpu->buckets[i], *next; wait; wait = next) {
            next = wait->next;
            mem_free(wait);
        }
    }
    mem_free(off_cpu);
}

static struct wait **find_wait(struct off_cpu *off_cpu, uint32_t thread_id)
{
    struct wait **at = &off_cpu->buckets[thread_id % BUCKETS];
    while (*at && (*at)->event->thread_id != thread_id)
        at = &(*at)->next;
    return at;
}

static void forget_wait(struct off_cpu *off_cpu, struct wait **at)
{
    struct wait *wait = *at;
    *at = wait->next;
    off_cpu->bytes -= wait->bytes;
    mem_free(wait);
}

void off_cpu_begin(struct off_cpu *off_cpu, const struct sample_event *event)
{
    struct wait **at = find_wait(off_cpu, event->thread_id);
    const size_t bytes = sample_event_bytes(event) - event->stack_bytes;
    if (*at) /* the RESUME of the previous interval was lost */
        forget_wait(off_cpu, at);
    if (off_cpu->bytes + bytes > BYTES_MAX) {
        off_cpu->refused++;
        return;
    }
    struct wait *wait = mem_alloc(1, sizeof(struct wait) + bytes);
    *wait = (struct wait){.since_ns = (int64_t)event->time_ns, .bytes = bytes, .next = *at};
    memcpy(wait->event, event, bytes);
    off_cpu->bytes += bytes;
    *at = wait;
}

static void report_until(struct off_cpu *off_cpu, struct wait *wait, int64_t until_ns)
{
    const int64_t waited_ns = until_ns - wait->since_ns;
    if (waited_ns <= 0 || wait->reported_ns + waited_ns < off_cpu->min_ns)
        return;
    off_cpu->visit(off_cpu->context, wait->event, waited_ns);
    wait->reported_ns += waited_ns;
    wait->since_ns = until_ns;
}

void off_cpu_end(struct off_cpu *off_cpu, const struct sample_event *resume)
{
    struct wait **at = find_wait(off_cpu, resume->thread_id);
    if (!*at || (*at)->event->time_ns != resume->amount)
        return;
    report_until(off_cpu, *at, (int64_t)resume->time_ns);
    forget_wait(off_cpu, at);
}

void off_cpu_cut(struct off_cpu *off_cpu, int64_t now_ns)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (struct wait *wait = off_cpu->buckets[i]; wait; wait = wait->next)
            report_until(off_cpu, wait, now_ns);
    }
}

uint64_t off_cpu_refused(const struct off_cpu *off_cpu)
{
    return off_cpu->refused;
}

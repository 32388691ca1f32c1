/*
 * read_budget: limits the time that reading one untrusted file may take.
 *
 * The file may be hostile, its disk may be slow (which costs no CPU time), and samples,
 * events and a stop of the agent wait meanwhile. The reader reports its work in bytes, including
 * the bytes that it reads from the file (file_window.h), so the clocks are read only once in 64
 * KiB. A single system call that blocks is not interrupted. Threads: the one that reads.
 */
#ifndef AGENT_PROCESS_READ_BUDGET_H
#define AGENT_PROCESS_READ_BUDGET_H

#include "lib/base/clock.h"

#include <stdbool.h>

enum { READ_BUDGET_STEP_BYTES = 64 << 10 };

struct read_budget {
    int64_t end_cpu_ns;             /* the CPU time of the thread at which reading ends */
    int64_t end_wall_ns;            /* by the monotonic clock */
    bool (*is_over)(void *context); /* true: stop reading; NULL: never */
    void *context;
    uint64_t bytes; /* since the clocks were last read */
    bool is_spent;
};

/* Charges bytes of work. False: the budget is spent, stop. A budget of NULL is unlimited. */
static inline bool read_budget_take(struct read_budget *budget, uint64_t bytes)
{
    if (!budget)
        return true;
    budget->bytes += bytes;
    if (budget->bytes >= READ_BUDGET_STEP_BYTES) {
        budget->bytes = 0;
        budget->is_spent |= clock_thread_cpu_ns() >= budget->end_cpu_ns ||
                            clock_monotonic_ns() >= budget->end_wall_ns ||
                            (budget->is_over && budget->is_over(budget->context));
    }
    return !budget->is_spent;
}

#endif

/*
 * read_budget: how much time a file of others may take, and who else may end its reading.
 *
 * The file may be hostile, and samples, events and a stop wait meanwhile; its disk may be slow, of
 * which processor time says nothing. Work is told in bytes, with those that are brought from the
 * file (file_window.h), so that the clocks are asked now and then only. One call that does not come
 * back is not ended. Threads: that which reads.
 */
#ifndef AGENT_PROCESS_READ_BUDGET_H
#define AGENT_PROCESS_READ_BUDGET_H

#include "lib/base/clock.h"

#include <stdbool.h>

enum { READ_BUDGET_STEP_BYTES = 64 << 10 };

struct read_budget {
    int64_t end_cpu_ns;             /* of the thread's processor time */
    int64_t end_wall_ns;            /* by the monotonic clock */
    bool (*is_over)(void *context); /* NULL: nobody else ends it */
    void *context;
    uint64_t bytes; /* since the last look */
    bool is_spent;
};

/* So much more is read; false: no more. A budget of NULL has no end. */
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

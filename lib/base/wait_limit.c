#include "lib/base/wait_limit.h"

#include "lib/base/clock.h"

#include <stddef.h>

enum { CHECK_MS = 100 }; /* how often cancellation is checked */

bool wait_limit_is_cancelled(const struct wait_limit *wait_limit)
{
    return wait_limit && wait_limit->is_cancelled &&
           atomic_load_explicit(wait_limit->is_cancelled, memory_order_relaxed);
}

bool wait_limit_is_late(const struct wait_limit *wait_limit)
{
    return wait_limit && wait_limit->deadline_ns && clock_monotonic_ns() >= wait_limit->deadline_ns;
}

bool wait_limit_is_over(const struct wait_limit *wait_limit)
{
    return wait_limit_is_cancelled(wait_limit) || wait_limit_is_late(wait_limit);
}

int64_t wait_limit_left_ms(const struct wait_limit *wait_limit, int64_t max_ms)
{
    if (wait_limit_is_over(wait_limit))
        return 0;
    if (!wait_limit || !wait_limit->deadline_ns)
        return max_ms;
    /* Rounded up, so that the result is 0 only after the deadline. */
    const int64_t left_ms = (wait_limit->deadline_ns - clock_monotonic_ns()) / CLOCK_NS_PER_MS + 1;
    return left_ms < 1 ? 1 : left_ms < max_ms ? left_ms : max_ms;
}

void wait_limit_sleep_ms(const struct wait_limit *wait_limit, int64_t duration_ms)
{
    while (duration_ms > 0) {
        const int64_t slice_ms =
            wait_limit_left_ms(wait_limit, duration_ms < CHECK_MS ? duration_ms : CHECK_MS);
        if (!slice_ms)
            return;
        clock_sleep_ms(slice_ms);
        duration_ms -= slice_ms;
    }
}

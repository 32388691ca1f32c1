#include "lib/base/wait_limit.h"

#include "lib/base/clock.h"

#include <stddef.h>

enum { LOOK_MS = 100 }; /* how often it is looked at whether anybody waits */

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

int64_t wait_limit_left_ms(const struct wait_limit *wait_limit, int64_t most_ms)
{
    if (wait_limit_is_over(wait_limit))
        return 0;
    if (!wait_limit || !wait_limit->deadline_ns)
        return most_ms;
    /* Rounded up, so that what is left is never nothing before its time. */
    const int64_t left_ms = (wait_limit->deadline_ns - clock_monotonic_ns()) / CLOCK_NS_PER_MS + 1;
    return left_ms < 1 ? 1 : left_ms < most_ms ? left_ms : most_ms;
}

void wait_limit_sleep_ms(const struct wait_limit *wait_limit, int64_t duration_ms)
{
    while (duration_ms > 0) {
        const int64_t slice_ms =
            wait_limit_left_ms(wait_limit, duration_ms < LOOK_MS ? duration_ms : LOOK_MS);
        if (!slice_ms)
            return;
        clock_sleep_ms(slice_ms);
        duration_ms -= slice_ms;
    }
}

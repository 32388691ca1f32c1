#include "agent/profile/window_time.h"

#include "lib/base/clock.h"

#include <stdbool.h>

#define STEP_MIN_NS CLOCK_NS_PER_S

struct window_time window_time_now(void)
{
    return (struct window_time){.wall_ns = clock_wall_ns(), .monotonic_ns = clock_monotonic_ns()};
}

int64_t window_time_start(const struct window_time *begin, const struct window_time *end)
{
    const int64_t length_ns = end->monotonic_ns - begin->monotonic_ns;
    const int64_t gained_ns = end->wall_ns - begin->wall_ns - length_ns;
    const bool is_stepped = gained_ns > STEP_MIN_NS || gained_ns < -STEP_MIN_NS;
    if (!is_stepped && begin->wall_ns < end->wall_ns)
        return begin->wall_ns;
    return end->wall_ns - (length_ns > 0 ? length_ns : 1);
}

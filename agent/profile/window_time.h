/*
 * window_time: when a window began and ended.
 *
 * A window is stored with wall-clock times, but the wall clock may be set, and it continues while
 * the host is suspended or a virtual machine is paused. The time in which samples could be taken is
 * that of the monotonic clock. Threads: any.
 */
#ifndef AGENT_PROFILE_WINDOW_TIME_H
#define AGENT_PROFILE_WINDOW_TIME_H

#include <stdint.h>

/* One point in time on both clocks. */
struct window_time {
    int64_t wall_ns;
    int64_t monotonic_ns;
};

struct window_time window_time_now(void);

/*
 * The wall-clock time at which the window begins; less than end->wall_ns. It is begin->wall_ns,
 * unless the wall clock gained or lost more than a second on the monotonic clock since. Then the
 * window keeps its monotonic length and its end: the time between the previous window and this one
 * was not sampled, and after a clock was set, the later time is the right one.
 */
int64_t window_time_start(const struct window_time *begin, const struct window_time *end);

#endif

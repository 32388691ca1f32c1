/*
 * clock: wall-clock and monotonic time. Wall-clock times are nanoseconds since 1970 UTC; durations
 * and deadlines use the monotonic clock. Threads: any.
 */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_S INT64_C(1000000000)
#define CLOCK_NS_PER_MS INT64_C(1000000)

enum { CLOCK_TEXT_BYTES = 32 };

int64_t clock_wall_ns(void);
int64_t clock_monotonic_ns(void);
/* Time since the machine started, including time asleep. The kernel reports the start of
 * processes on this clock. */
int64_t clock_boot_ns(void);
/* CPU time that the calling thread has used. */
int64_t clock_thread_cpu_ns(void);
void clock_sleep_ms(int64_t duration_ms);
/* Formats a time as RFC 3339 in UTC with milliseconds, "2026-01-02T03:04:05.678Z". Returns text. */
const char *clock_format(int64_t wall_ns, char text[CLOCK_TEXT_BYTES]);

#endif

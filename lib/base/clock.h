/*
 * clock: time. Wall-clock time is nanoseconds since 1970 UTC, durations and deadlines use the
 * monotonic clock. Threads: any.
 */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_S INT64_C(1000000000)
#define CLOCK_NS_PER_MS INT64_C(1000000)

enum { CLOCK_TEXT_BYTES = 32 };

int64_t clock_wall_ns(void);
int64_t clock_monotonic_ns(void);
/* Since the machine started, time asleep included: what starts of processes are told in. */
int64_t clock_boot_ns(void);
/* CPU time that the calling thread has used. */
int64_t clock_thread_cpu_ns(void);
void clock_sleep_ms(int64_t duration_ms);
/* RFC 3339 with milliseconds in UTC, "2026-01-02T03:04:05.678Z", into text; returns text. */
const char *clock_format(int64_t wall_ns, char text[CLOCK_TEXT_BYTES]);

#endif

#include "lib/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

int64_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void clock_sleep_ms(int64_t duration_ms)
{
    struct timespec left = {.tv_sec = duration_ms / 1000,
                            .tv_nsec = duration_ms % 1000 * CLOCK_NS_PER_MS};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

const char *clock_format(int64_t wall_ns, char text[CLOCK_TEXT_BYTES])
{
    time_t seconds = (time_t)(wall_ns / CLOCK_NS_PER_S);
    struct tm utc;
    char date[24];
    if (!gmtime_r(&seconds, &utc) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc))
        snprintf(date, sizeof(date), "1970-01-01T00:00:00");
    snprintf(text, CLOCK_TEXT_BYTES, "%s.%03dZ", date,
             (int)(wall_ns % CLOCK_NS_PER_S / CLOCK_NS_PER_MS));
    return text;
}

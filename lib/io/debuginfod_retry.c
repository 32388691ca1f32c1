/*
 * Three schedules, from short to long:
 *
 * 1. One request is tried three times. The pauses before the second and the third try are 1 s and
 *    3 s, each shortened by a random part of up to a half, so that clients that failed at the same
 *    time do not return at the same time.
 * 2. A host with five failures in a row is suspended for 60 s. Then one thread sends a request,
 *    during which the others send none. Its result ends the suspension or begins the next one.
 *    Example: failures at 0, 1, 2, 3 and 4 s suspend the host until 64 s. The first thread
 *    that calls debuginfod_breaker_may from then on sends. If it fails at 70 s, the host is
 *    suspended until 130 s. A success at any time sets the count of failures to 0.
 * 3. A file that was not found is requested again later, and less often each time. A debug file
 *    may be published after the program, so one that is absent is requested again after 10 min,
 *    1 h, 6 h and then every 24 h. A server that did not respond may be back soon: the pauses are
 *    1 min, 5 min, then always 30 min, or the delay in its Retry-After if that is longer. The
 *    caller stores the number of attempts with the file (api/debuginfo/fetch_job).
 */
#include "lib/io/debuginfod_retry.h"

#include "lib/base/clock.h"

#include <stddef.h>

/* The number at attempt, from 1; the last one if there are more attempts. */
static int64_t pick_step(const int64_t *steps, size_t count, unsigned attempt)
{
    size_t at = attempt > 0 ? attempt - 1 : 0;
    return steps[at < count ? at : count - 1];
}

int64_t debuginfod_later_s(enum debuginfod_outcome outcome, unsigned attempt, int retry_after_s)
{
    static const int64_t absent[] = {600, 3600, 21600, 86400};
    static const int64_t unreachable[] = {60, 300, 1800};
    int64_t later = 0;
    switch (outcome) {
    case DEBUGINFOD_FOUND:
        return 0;
    case DEBUGINFOD_ABSENT:
        return pick_step(absent, sizeof(absent) / sizeof(*absent), attempt);
    case DEBUGINFOD_UNREACHABLE:
        later = pick_step(unreachable, sizeof(unreachable) / sizeof(*unreachable), attempt);
        break;
    case DEBUGINFOD_REFUSED:
        return DEBUGINFOD_MAX_LATER_S;
    }
    if (retry_after_s > later)
        later = retry_after_s;
    return later < DEBUGINFOD_MAX_LATER_S ? later : DEBUGINFOD_MAX_LATER_S;
}

int64_t debuginfod_pause_ms(unsigned try_number, uint32_t chance)
{
    int64_t pause = 1000;
    for (unsigned i = 2; i < try_number && i < DEBUGINFOD_TRIES + 1; i++)
        pause *= 3;
    return pause - (int64_t)((uint64_t)pause / 2 * chance >> 32);
}

bool debuginfod_breaker_may(struct debuginfod_breaker *breaker, int64_t now_ns)
{
    if (breaker->failures < DEBUGINFOD_BREAK_AFTER)
        return true;
    if (breaker->is_probing || now_ns < breaker->open_until_ns)
        return false;
    breaker->is_probing = true;
    return true;
}

void debuginfod_breaker_note(struct debuginfod_breaker *breaker, bool is_failure, int64_t now_ns)
{
    breaker->is_probing = false;
    if (!is_failure) {
        breaker->failures = 0;
        return;
    }
    if (breaker->failures < DEBUGINFOD_BREAK_AFTER)
        breaker->failures++;
    if (breaker->failures >= DEBUGINFOD_BREAK_AFTER)
        breaker->open_until_ns = now_ns + DEBUGINFOD_BREAK_S * CLOCK_NS_PER_S;
}

void debuginfod_breaker_forgo(struct debuginfod_breaker *breaker)
{
    breaker->is_probing = false;
}

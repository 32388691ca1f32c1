#include "lib/io/debuginfod_retry.h"

#include "lib/base/clock.h"

#include <stddef.h>

static int64_t step(const int64_t *steps, size_t count, unsigned attempt)
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
        return step(absent, sizeof(absent) / sizeof(*absent), attempt);
    case DEBUGINFOD_UNREACHABLE:
        later = step(unreachable, sizeof(unreachable) / sizeof(*unreachable), attempt);
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

/*
 * wait_limit: limits the wait of a caller by a deadline and a cancellation flag.
 *
 * A NULL wait_limit never ends. Threads: any.
 */
#ifndef LIB_BASE_WAIT_LIMIT_H
#define LIB_BASE_WAIT_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wait_limit {
    int64_t deadline_ns;             /* on clock_monotonic_ns; 0: none */
    const atomic_bool *is_cancelled; /* set when the caller no longer waits; or NULL */
};

bool wait_limit_is_cancelled(const struct wait_limit *wait_limit);
bool wait_limit_is_late(const struct wait_limit *wait_limit); /* past the deadline */
/* Cancelled or past the deadline. */
bool wait_limit_is_over(const struct wait_limit *wait_limit);

/* The remaining time, at most max_ms; 0 when the limit is over. */
int64_t wait_limit_left_ms(const struct wait_limit *wait_limit, int64_t max_ms);
/* Sleeps for duration_ms, or until the limit is over; a cancellation is noticed within 100 ms. */
void wait_limit_sleep_ms(const struct wait_limit *wait_limit, int64_t duration_ms);

#endif

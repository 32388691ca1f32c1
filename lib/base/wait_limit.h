/*
 * patience: how long somebody waits for something: until a moment, and while he is there at all.
 *
 * NULL is patience without end. Threads: any.
 */
#ifndef LIB_BASE_WAIT_LIMIT_H
#define LIB_BASE_WAIT_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wait_limit {
    int64_t deadline_ns;             /* of clock_monotonic_ns; 0: none */
    const atomic_bool *is_cancelled; /* nobody waits any more; or NULL */
};

bool wait_limit_is_cancelled(const struct wait_limit *wait_limit);
bool wait_limit_is_late(const struct wait_limit *wait_limit); /* past the deadline */
/* Either of both. */
bool wait_limit_is_over(const struct wait_limit *wait_limit);

/* What is left of it, at most most_ms; 0 when it is over. */
int64_t wait_limit_left_ms(const struct wait_limit *wait_limit, int64_t most_ms);
/* Sleeps for as long, and ends soon after the patience does. */
void wait_limit_sleep_ms(const struct wait_limit *wait_limit, int64_t duration_ms);

#endif

/*
 * interleaving: whether the snapshots of one series of gauges come from several processes.
 *
 * Processes that send the same labels share a series, and each snapshot replaces the one of another
 * process: the value alternates. Pyroscope's SDK for Go, for example, has the same session in all
 * processes of a host. A sender that states a duration sends one snapshot per duration, so two
 * senders have durations that add up to twice the time between the first and the last snapshot.
 * Series without durations are not recognized. Threads: an object belongs to one thread. Private to
 * store/.
 */
#ifndef STORE_VALUES_INTERLEAVING_H
#define STORE_VALUES_INTERLEAVING_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed for each series. */
struct interleaving {
    double duration_ns; /* the sum */
    uint64_t count;
};

/* Adds a profile, in any order; a snapshot may consist of several. duration_ns <= 0: unknown. */
void interleaving_add(struct interleaving *interleaving, int64_t duration_ns);
/* times_ns: the distinct times of the snapshots, ascending. */
bool interleaving_is_found(const struct interleaving *interleaving, const int64_t *times_ns,
                           uint32_t count);

#endif

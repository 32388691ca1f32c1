/*
 * partial_coverage: by how much a sum of rates is too low because its series are profiled only part
 * of the time, at different times.
 *
 * A rate is divided by the time that any series covers. Ten pods that use one core each and are
 * profiled for 10 s of each minute, each at another second, cover the whole minute together: the
 * sum of their rates is 1.67 cores. If all were profiled in the same 10 s, it would be 10. The
 * gaps between regular profiles are no time without load, and the profiles do not say what happened
 * in them. So the number stays, and a note states how much is missing (partial_coverage_lack): the
 * estimate takes the rate of each series for its gaps, too. A gap is what is shorter than 1.5 times
 * the distance of the profiles there (store/values/cadence.h); a longer pause is a series that did
 * not exist. A series with a single profile in the window has no known gap: where several have
 * one each, at different times, the note says what would be missing (partial_coverage_singles).
 *
 * Threads: an object belongs to one thread. Private to store/.
 */
#ifndef STORE_VALUES_PARTIAL_COVERAGE_H
#define STORE_VALUES_PARTIAL_COVERAGE_H

#include "store/values/coverage.h"

/* All zeros: no series. */
struct partial_coverage {
    struct coverage covered;  /* by any series */
    struct coverage existing; /* the same with the gaps of regular profiles */
    double sum;               /* the values of all series */
    double estimate;          /* the same if each series had its rate in its gaps, too */
    uint32_t series_count;
    uint32_t single_count; /* series with a single profile */
    double longest_single_ns;
};

void partial_coverage_fini(struct partial_coverage *partial);

/* Adds a series: the closed spans that it covers in the window, the sum of its values there, and
 * the shortest duration of its profiles, by which a single one is recognized. */
void partial_coverage_add(struct partial_coverage *partial, const struct coverage *covered,
                          double sum, int64_t shortest_ns);

/* The part of the rate that is missing, from 0 to below 1. */
double partial_coverage_lack(const struct partial_coverage *partial);

/* The number of series with a single profile; 0 for fewer than two, or if all series cover the same
 * time. */
uint32_t partial_coverage_singles(const struct partial_coverage *partial);

size_t partial_coverage_memory(const struct partial_coverage *partial);

#endif

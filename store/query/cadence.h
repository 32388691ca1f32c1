/*
 * cadence: how long a snapshot, or a profile without a duration, counts: both have a begin and no
 * end.
 *
 * It counts until the next one of its series, unless that is a gap. The interval around the i-th is
 * the median of five distances: from it to the next, and the two before and after that one. A
 * longer distance than 1.5 intervals is a gap, before which the i-th counts for one interval. So a
 * change of cadence is no gap, and two gaps in a row are. The result depends on CADENCE_NEIGHBOURS
 * neighbours on each side only, and so not on the window of a query that reads these.
 *
 * Example, times in seconds: 0, 10, 20, 80, 90, 100. The distances are 10, 10, 60, 10, 10. The
 * third (20) has interval 10, the median of all five, and 60 > 15 is a gap: it counts from 20 to
 * 30.
 *
 * Times are ascending and distinct. Private to store/.
 */
#ifndef STORE_QUERY_CADENCE_H
#define STORE_QUERY_CADENCE_H

#include <stdint.h>

enum { CADENCE_NEIGHBOURS = 3 };

/* Sorts times and removes duplicates; returns how many are left. */
uint32_t cadence_order(int64_t *times_ns, uint32_t count);

/* The distance; INT64_MAX if it does not fit. */
int64_t cadence_distance(int64_t from_ns, int64_t to_ns);

/* The interval around the i-th time; 0: there is no other time. */
int64_t cadence_interval(const int64_t *times_ns, uint32_t count, uint32_t i);

/* The longest distance that is no gap. */
int64_t cadence_longest(int64_t interval_ns);

/* The time until which the i-th counts; its own time when there is no other. */
int64_t cadence_end(const int64_t *times_ns, uint32_t count, uint32_t i);

#endif

/*
 * cadence: the time for which a snapshot, or a profile without a duration, counts: both have a
 * begin and no end.
 *
 * Such a profile counts until the next one of its series, unless there is a gap between the two.
 * The interval around the i-th profile is the median of five distances: the one from it to the
 * next, the two before that distance and the two after it. (Near the start and the end there are
 * fewer: of four, the third shortest is taken, of two the shorter one.) If the distance to the next
 * profile is more than 1.5 intervals, it is a gap, and the i-th profile counts for one interval. A
 * permanent change of the distance is therefore no gap, while one or two long distances among short
 * ones are gaps. The result depends only on CADENCE_NEIGHBOURS neighbours on each side, so it is
 * the same for every window whose query reads these.
 *
 * Example, times in seconds: 0, 10, 20, 80, 90, 100. The distances are 10, 10, 60, 10, 10. The
 * third (20) has interval 10, the median of all five, and 60 > 15 is a gap: it counts from 20 to
 * 30.
 *
 * Times are ascending and distinct. Private to store/.
 */
#ifndef STORE_VALUES_CADENCE_H
#define STORE_VALUES_CADENCE_H

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

/* The index of the first time that is not before at_ns; count if there is none. */
uint32_t cadence_find(const int64_t *times_ns, uint32_t count, int64_t at_ns);
/* The time until which the i-th counts; its own time when there is no other. */
int64_t cadence_end(const int64_t *times_ns, uint32_t count, uint32_t i);

#endif

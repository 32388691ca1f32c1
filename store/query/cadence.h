/*
 * cadence: how long something counts that has a begin and no end: a snapshot, or a profile without
 * a duration.
 *
 * It counts until the next one of its series, unless that is a gap. The interval around the i-th is
 * the median of the distance from it to the next and of the two distances before and after
 * that one; a distance of more than one and a half intervals is a gap, after which the i-th has
 * counted for one interval. So a change of cadence is no gap, and two gaps in a row are. The result
 * depends on CADENCE_NEIGHBOURS neighbours on each side alone, and so not on the window of a query
 * that reads these.
 *
 * Times are ascending and distinct. Private to store/.
 */
#ifndef STORE_QUERY_CADENCE_H
#define STORE_QUERY_CADENCE_H

#include <stdint.h>

enum { CADENCE_NEIGHBOURS = 3 };

/* Puts times in order and removes those that are there already; returns how many are left. */
uint32_t cadence_order(int64_t *times_ns, uint32_t count);

/* Distances that do not fit are INT64_MAX. */
int64_t cadence_distance(int64_t from_ns, int64_t to_ns);

/* The interval around the i-th; 0: there is no other one. */
int64_t cadence_interval(const int64_t *times_ns, uint32_t count, uint32_t i);

/* Longer distances are gaps. */
int64_t cadence_longest(int64_t interval_ns);

/* Until when the i-th counts; without another one that is its own time. */
int64_t cadence_end(const int64_t *times_ns, uint32_t count, uint32_t i);

#endif

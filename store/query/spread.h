/*
 * spread: the values of one series, spread over the time that they cover, as sums per group and
 * step of a window.
 *
 * A value v of [begin, begin + duration) has in a part of that time v * part / duration, kept as a
 * multiple of 1 / SPREAD_UNIT and rounded so that the parts add up to v exactly: a part is
 * trunc(v * SPREAD_UNIT * (end - begin) / duration) less the same of its own begin. When the window
 * cuts a value, the part inside the window counts.
 *
 * Unknown durations (0 or less): the profile covers the time that store/query/cadence.h gives it
 * among those of the series that have no duration either. These are added beyond the window, too,
 * as many as that needs. A profile that is alone covers its step.
 *
 * Levels (gauges) are added like profiles without a duration: a snapshot holds for the time that it
 * covers, one that is alone for SPREAD_LONE_NS. A step has the integral: the value times the part
 * of that time, in ns, which divided by the time that any series covers is the average of their
 * sum.
 *
 * Threads: an object belongs to one thread. Private to store/.
 */
#ifndef STORE_QUERY_SPREAD_H
#define STORE_QUERY_SPREAD_H

#include "lib/base/map.h"
#include "store/query/coverage.h"

/* Gaps of at most this part of the series' shortest duration, and of a step, count as covered: an
 * agent reads the clock twice between one window and the next. */
enum { SPREAD_SLACK_PART = 256 };

/* How long a snapshot holds that has no other one of its series around it: a minute. */
#define SPREAD_LONE_NS INT64_C(60000000000)

/* Sums have a fraction, so that a few samples of ten seconds are as even in steps of one. */
enum { SPREAD_UNIT_BITS = 20, SPREAD_UNIT = 1 << SPREAD_UNIT_BITS };

/* Step i is [start_ns - lead_ns + i * step_ns, …), cut to the window. */
struct spread_steps {
    int64_t start_ns;
    int64_t end_ns;
    int64_t lead_ns; /* below step_ns */
    int64_t step_ns;
};

/* The sum of one group's values in one step. */
struct spread_sum {
    __int128 sum; /* in 1 / SPREAD_UNIT; of levels times ns */
    uint32_t group;
    uint32_t step;
};

struct spread_unknown {
    int64_t time_ns;
    int64_t value;
    uint32_t group;
};

struct spread {
    struct spread_steps steps;
    bool are_gauges; /* set by the caller before the first series */
    /* The series: */
    struct spread_sum *sums;
    uint32_t sum_count;
    struct coverage covered; /* closed by spread_end_series */
    int64_t *times_ns;       /* distinct begins of profiles without a duration, in order */
    uint32_t time_count;
    int64_t interval_ns; /* the median of their distances; 0: there are not two of them */
    /* The whole query: */
    int64_t longest_ns;     /* of all durations that reach into the window */
    uint64_t unknown_count; /* profiles of the window without a duration */
    uint64_t add_count;     /* additions to sums: what the work is proportional to */
    /* Internal: */
    uint32_t *first_numbers;    /* per step: numbers of sums of the series' first group, plus 1 */
    struct map_u64 sum_numbers; /* of the other groups, by group and step */
    uint32_t sum_capacity;
    uint32_t last_sum; /* profiles mostly come in order of time */
    uint32_t last_step;
    int64_t last_from_ns; /* bounds of last_step, cut to the window */
    int64_t last_to_ns;
    int64_t shortest_ns; /* of the series' durations */
    struct spread_unknown *unknown;
    uint32_t unknown_sums;
    uint32_t unknown_capacity;
    uint32_t time_capacity;
};

/* There are less than 2^32 steps, of at least 1 ns. */
void spread_init(struct spread *spread, const struct spread_steps *steps);
void spread_fini(struct spread *spread); /* of zeros a no-op */
size_t spread_memory(const struct spread *spread);

uint64_t spread_count_steps(const struct spread_steps *steps);
/* The step of a moment of the window. */
uint32_t spread_step_of(const struct spread_steps *steps, int64_t time_ns);
/* The part of the window that a step is. */
void spread_find_step(const struct spread_steps *steps, uint32_t step, int64_t *ret_begin_ns,
                      int64_t *ret_end_ns);

void spread_begin_series(struct spread *spread);
/* Adds the whole value to the step of a moment of the window. */
void spread_add_at(struct spread *spread, uint32_t group, int64_t time_ns, int64_t value);
/* Spreads a value. A value of 0 adds its group to the steps, too. */
void spread_add(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t duration_ns,
                int64_t value);
/* The same for a part of a value, of which groups had `before` already: so the parts of all groups
 * add up to those of the whole value. The duration is known. */
void spread_add_part(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t duration_ns,
                     int64_t before, int64_t value);
/* A profile of the series covers its time. To be called once for each, whatever its groups; a level
 * has a duration of 0. */
void spread_cover(struct spread *spread, int64_t begin_ns, int64_t duration_ns);
/* Several profiles cover a span together, without a gap. longest_ns, above 0, is their longest
 * duration: it bounds the gaps before and after the span that count as covered, since a series that
 * is added in spans alone has no shorter duration that is known. */
void spread_cover_span(struct spread *spread, int64_t begin_ns, int64_t end_ns, int64_t longest_ns);
/* All of the series is added: places values of unknown durations, and closes what is covered. */
void spread_end_series(struct spread *spread);

#endif

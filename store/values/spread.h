/*
 * spread: spreads the values of one series over the time that they cover, as sums per group and
 * step of a window.
 *
 * A value v of [begin, begin + duration) has v * part / duration in a part of that time. Sums are
 * multiples of 1 / SPREAD_UNIT. Each part is a difference of two truncated products, trunc(v *
 * SPREAD_UNIT * t / duration) at its end and at its start, so the parts of a value add up to v
 * exactly. When the window cuts a value, the part inside counts.
 *
 * Example, without the unit: v = 10 over 3 s in steps of 1 s. The products at 0, 1, 2 and 3 s are
 * 0, 3, 6 and 10, so the steps have 3, 3 and 4.
 *
 * Unknown durations (0 or less): the profile covers the time that store/values/cadence.h gives it
 * among the profiles of the series that have no duration either. The caller also adds the
 * neighbours outside the window that cadence needs. A profile that is alone covers its step.
 *
 * Gauges are added like profiles without a duration: a snapshot holds for the time that it covers,
 * one that is alone for SPREAD_LONE_NS. A step has the integral, value times ns, which divided by
 * the time that any series covers is the average of their sum.
 *
 * Threads: an object belongs to one thread. Private to store/.
 */
#ifndef STORE_VALUES_SPREAD_H
#define STORE_VALUES_SPREAD_H

#include "lib/base/map.h"
#include "store/values/coverage.h"

/* Gaps of at most this part of the series' shortest duration, and of a step, count as covered: an
 * agent reads the clock twice between two windows. */
enum { SPREAD_SLACK_PART = 256 };

/* How long a snapshot holds when its series has no other one around it: a minute. */
#define SPREAD_LONE_NS INT64_C(60000000000)

/* A granule, and so an hour with totals only, has the profiles that begin in one hour. */
#define SPREAD_HOUR_NS INT64_C(3600000000000)

/* Sums have a fraction of 20 bits, so that a value of 3 for ten seconds is spread evenly over steps
 * of one second. */
enum { SPREAD_UNIT_BITS = 20, SPREAD_UNIT = 1 << SPREAD_UNIT_BITS };

/* Step i is [start_ns - lead_ns + i * step_ns, …), cut to the window. lead_ns aligns the steps: for
 * a window from 10:03 and steps of 5 minutes it is 3 minutes, so step 1 begins at 10:05. */
struct spread_steps {
    int64_t start_ns;
    int64_t end_ns;
    int64_t lead_ns; /* below step_ns */
    int64_t step_ns;
};

/* The sum of one group's values in one step. */
struct spread_sum {
    __int128 sum; /* in 1 / SPREAD_UNIT; of gauges value times ns */
    uint32_t group;
    uint32_t step;
};

struct spread_unknown {
    int64_t time_ns;
    int64_t value;
    uint32_t group;
};

/* The deltas of one hour with totals only; zeroed: none. The hour is crowded when they cover more
 * time than it has and one of them extends beyond it by more than a hundredth of an hour: its rate
 * may be too high. */
struct spread_hour {
    int64_t begin_ns;
    __int128 all_ns; /* sum of their durations */
    int64_t over_ns; /* the longest time for which one extends beyond the hour */
    bool is_counted; /* as crowded */
};

struct spread {
    struct spread_steps steps;
    bool are_gauges; /* set by the caller before the first series */
    /* The current series: */
    struct spread_sum *sums;
    uint32_t sum_count;
    struct coverage covered; /* closed by spread_end_series */
    int64_t *times_ns;       /* distinct starts of profiles without a duration, ascending */
    uint32_t time_count;
    int64_t *hours_ns; /* starts of the hours of spread_note_hour; sorted by spread_end_series */
    uint32_t hour_count;
    int64_t interval_ns; /* the median distance of times_ns; 0: fewer than two times */
    /* The whole query: */
    int64_t longest_ns;     /* of all durations that extend into the window */
    uint64_t unknown_count; /* profiles of the window without a duration */
    uint32_t crowded_count; /* hours of spread_note_hour that are crowded */
    uint64_t add_count;     /* additions to sums: proportional to the work */
    /* Called every 2^18 additions, for checks of limits: one value may be in thousands of steps.
     * After it returned false, all further additions are dropped (is_stopped). NULL: not called. */
    bool (*goes_on)(void *context);
    void *goes_on_context;
    bool is_stopped;
    /* Internal: */
    uint32_t *first_numbers;    /* per step: index + 1 of the sum of the series' first group */
    struct map_u64 sum_numbers; /* indexes of the other groups' sums, by group and step */
    uint32_t sum_capacity;
    uint32_t last_sum; /* cache: profiles mostly come in order of time */
    uint32_t last_step;
    int64_t last_from_ns; /* bounds of last_step, cut to the window */
    int64_t last_to_ns;
    int64_t shortest_ns; /* of the series' durations */
    struct spread_unknown *unknown;
    uint32_t unknown_sums;
    uint32_t unknown_capacity;
    uint32_t time_capacity;
    uint32_t hour_capacity;
};

/* Fewer than 2^32 steps, each of at least 1 ns. */
void spread_init(struct spread *spread, const struct spread_steps *steps);
void spread_fini(struct spread *spread); /* a no-op on zeros */
size_t spread_memory(const struct spread *spread);

uint64_t spread_count_steps(const struct spread_steps *steps);
/* The step of a time in the window. */
uint32_t spread_step_of(const struct spread_steps *steps, int64_t time_ns);
/* The bounds of a step, cut to the window. */
void spread_find_step(const struct spread_steps *steps, uint32_t step, int64_t *ret_begin_ns,
                      int64_t *ret_end_ns);

void spread_begin_series(struct spread *spread);
/* Adds the whole value to the step of a time in the window. */
void spread_add_at(struct spread *spread, uint32_t group, int64_t time_ns, int64_t value);
/* Spreads a value. A value of 0 still creates its group's sums. */
void spread_add(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t duration_ns,
                int64_t value);
/* Spreads a part of a value of which groups had `before` already, so that the parts of all groups
 * add up to those of the whole value. The duration is known. */
void spread_add_part(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t duration_ns,
                     int64_t before, int64_t value);
/* Records that a profile of the series covers its time. Called once per profile, whatever its
 * groups; a gauge has duration 0. */
void spread_cover(struct spread *spread, int64_t begin_ns, int64_t duration_ns);
/* Records a span that several profiles cover together without a gap. longest_ns, above 0, is their
 * longest duration: it bounds the gaps around the span that count as covered, since a series that
 * is added in spans only has no known shorter duration. */
void spread_cover_span(struct spread *spread, int64_t begin_ns, int64_t end_ns, int64_t longest_ns);
/* Records that deltas without a duration in the hour from begin_ns on count in it as a whole: the
 * time for which the last one extends beyond the hour is covered at the start of the hour. */
void spread_note_hour(struct spread *spread, int64_t begin_ns);
/* Covers, at the start of an hour, the time for which a delta that counts in the hour as a whole
 * extends beyond it: the last delta of the hour before was there, so one busy core is one core.
 * Example: deltas of 15 minutes from 2:14 on; the one of 2:59 covers 2:59 to 3:00 and 2:00 to
 * 2:14. */
void spread_cover_overhang(struct spread *spread, int64_t hour_ns, int64_t over_ns);
/* Adds deltas to an hour, or begins another one; true the first time that it is crowded. */
bool spread_hour_add(struct spread_hour *hour, int64_t begin_ns, __int128 all_ns, int64_t over_ns);
/* Ends the series: spreads the values of unknown durations and closes the coverage. */
void spread_end_series(struct spread *spread);

#endif

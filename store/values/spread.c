#include "store/values/spread.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "store/values/cadence.h"

#include <stdlib.h>
#include <string.h>

/* ---- steps ---- */

/* Time since the start of the first step, which may be before INT64_MIN: unsigned arithmetic wraps
 * correctly. */
static uint64_t offset_of(const struct spread_steps *steps, int64_t time_ns)
{
    return (uint64_t)time_ns - (uint64_t)steps->start_ns + (uint64_t)steps->lead_ns;
}

uint64_t spread_count_steps(const struct spread_steps *steps)
{
    const uint64_t all_ns = offset_of(steps, steps->end_ns);
    return all_ns / (uint64_t)steps->step_ns + (all_ns % (uint64_t)steps->step_ns != 0);
}

uint32_t spread_step_of(const struct spread_steps *steps, int64_t time_ns)
{
    return (uint32_t)(offset_of(steps, time_ns) / (uint64_t)steps->step_ns);
}

void spread_find_step(const struct spread_steps *steps, uint32_t step, int64_t *ret_begin_ns,
                      int64_t *ret_end_ns)
{
    const uint64_t lead_ns = (uint64_t)steps->lead_ns;
    const uint64_t all_ns = offset_of(steps, steps->end_ns);
    const uint64_t begin_ns = (uint64_t)step * (uint64_t)steps->step_ns;
    const uint64_t left_ns = all_ns - begin_ns;
    const uint64_t length_ns =
        left_ns < (uint64_t)steps->step_ns ? left_ns : (uint64_t)steps->step_ns;
    const uint64_t origin_ns = (uint64_t)steps->start_ns - lead_ns;
    *ret_begin_ns = step ? (int64_t)(origin_ns + begin_ns) : steps->start_ns;
    *ret_end_ns = (int64_t)(origin_ns + begin_ns + length_ns);
}

/* ---- lifetime ---- */

void spread_init(struct spread *spread, const struct spread_steps *steps)
{
    *spread = (struct spread){.steps = *steps};
}

void spread_fini(struct spread *spread)
{
    map_u64_fini(&spread->sum_numbers);
    mem_free(spread->first_numbers);
    mem_free(spread->sums);
    mem_free(spread->unknown);
    mem_free(spread->times_ns);
    mem_free(spread->hours_ns);
    coverage_fini(&spread->covered);
    *spread = (struct spread){0};
}

size_t spread_memory(const struct spread *spread)
{
    return spread->sum_capacity * (sizeof(*spread->sums) + 2 * sizeof(struct map_u64_slot)) +
           (spread->first_numbers ? spread_count_steps(&spread->steps) * sizeof(uint32_t) : 0) +
           spread->unknown_capacity * sizeof(*spread->unknown) +
           spread->time_capacity * sizeof(*spread->times_ns) +
           spread->hour_capacity * sizeof(*spread->hours_ns) + coverage_memory(&spread->covered);
}

void spread_begin_series(struct spread *spread)
{
    for (uint32_t i = 0; i < spread->sum_count; i++)
        spread->first_numbers[spread->sums[i].step] = 0;
    map_u64_fini(&spread->sum_numbers);
    spread->sum_numbers = (struct map_u64){0};
    spread->sum_count = spread->last_sum = 0;
    spread->last_from_ns = spread->last_to_ns = 0;
    spread->shortest_ns = INT64_MAX;
    spread->interval_ns = 0;
    spread->unknown_sums = spread->time_count = spread->hour_count = 0;
    coverage_clear(&spread->covered);
}

/* Most series have one group: the indexes of its sums are in an array by step. */
static uint32_t find_number(struct spread *spread, uint32_t group, uint32_t step)
{
    if (spread->sum_count && group != spread->sums[0].group)
        return map_u64_add(&spread->sum_numbers, (uint64_t)group << 32 | step, spread->sum_count);
    if (!spread->first_numbers)
        spread->first_numbers = mem_new(uint32_t, spread_count_steps(&spread->steps));
    uint32_t *number = &spread->first_numbers[step];
    if (!*number)
        *number = spread->sum_count + 1;
    return *number - 1;
}

static void add_to_step(struct spread *spread, uint32_t group, uint32_t step, __int128 value)
{
    enum { CHECK_EVERY = 1 << 18 };
    if (spread->is_stopped)
        return;
    if (++spread->add_count % CHECK_EVERY == 0 && spread->goes_on)
        spread->is_stopped = !spread->goes_on(spread->goes_on_context);
    uint32_t number = spread->last_sum;
    const struct spread_sum *last = number < spread->sum_count ? &spread->sums[number] : NULL;
    if (!last || last->group != group || last->step != step)
        number = find_number(spread, group, step);
    if (number == spread->sum_count) {
        vec_reserve(spread->sums, spread->sum_capacity, spread->sum_count + 1);
        spread->sums[spread->sum_count++] = (struct spread_sum){.group = group, .step = step};
    }
    spread->sums[number].sum += value;
    spread->last_sum = number;
}

void spread_add_at(struct spread *spread, uint32_t group, int64_t time_ns, int64_t value)
{
    add_to_step(spread, group, spread_step_of(&spread->steps, time_ns),
                (__int128)value * SPREAD_UNIT);
}

/* ---- values of a known duration ---- */

/* Senders choose durations: an end beyond INT64_MAX is clamped. */
static int64_t end_of(int64_t begin_ns, int64_t duration_ns)
{
    int64_t end_ns;
    return __builtin_add_overflow(begin_ns, duration_ns, &end_ns) ? INT64_MAX : end_ns;
}

/*
 * value * SPREAD_UNIT * part_ns / duration_ns, truncated. value and part_ns have 63 bits each, so
 * their product leaves no space for the unit: the quotient is scaled, and the remainder by itself.
 */
static __int128 first_part(int64_t value, uint64_t part_ns, int64_t duration_ns)
{
    if (part_ns == 0 || part_ns == (uint64_t)duration_ns)
        return part_ns ? (__int128)value * SPREAD_UNIT : 0;
    const __int128 product = (__int128)value * part_ns;
    const __int128 whole = product / duration_ns, rest = product - whole * duration_ns;
    const __int128 scaled = rest * SPREAD_UNIT;
    const bool is_narrow = scaled >= INT64_MIN && scaled <= INT64_MAX;
    return whole * SPREAD_UNIT + (is_narrow ? (int64_t)scaled / duration_ns : scaled / duration_ns);
}

/* Adds the parts of a value step by step; from_ns and to_ns are in the window. */
static void add_in_parts(struct spread *spread, uint32_t group, int64_t begin_ns,
                         int64_t duration_ns, int64_t value, int64_t from_ns, int64_t to_ns)
{
    const struct spread_steps *steps = &spread->steps;
    const uint64_t step_ns = (uint64_t)steps->step_ns;
    uint64_t done_ns = (uint64_t)from_ns - (uint64_t)begin_ns;
    const uint64_t end_ns = (uint64_t)to_ns - (uint64_t)begin_ns;
    const uint64_t offset_ns = offset_of(steps, from_ns);
    uint32_t step = (uint32_t)(offset_ns / step_ns);
    uint64_t step_left_ns = step_ns - offset_ns % step_ns;
    __int128 before = first_part(value, done_ns, duration_ns);
    while (done_ns < end_ns && !spread->is_stopped) {
        const uint64_t left_ns = end_ns - done_ns;
        done_ns += left_ns < step_left_ns ? left_ns : step_left_ns;
        step_left_ns = step_ns;
        const __int128 after = first_part(value, done_ns, duration_ns);
        add_to_step(spread, group, step++, after - before);
        before = after;
    }
    spread->last_step = step - 1;
    spread_find_step(steps, step - 1, &spread->last_from_ns, &spread->last_to_ns);
}

static void add_known(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t duration_ns,
                      int64_t value)
{
    const struct spread_steps *steps = &spread->steps;
    const int64_t end_ns = end_of(begin_ns, duration_ns);
    if (begin_ns >= spread->last_from_ns && end_ns <= spread->last_to_ns) {
        add_to_step(spread, group, spread->last_step, (__int128)value * SPREAD_UNIT);
        return;
    }
    const int64_t from_ns = begin_ns > steps->start_ns ? begin_ns : steps->start_ns;
    const int64_t to_ns = end_ns < steps->end_ns ? end_ns : steps->end_ns;
    if (from_ns >= to_ns)
        return;
    if (value)
        add_in_parts(spread, group, begin_ns, duration_ns, value, from_ns, to_ns);
    else
        spread_add_at(spread, group, from_ns, 0);
}

/* ---- gauges ---- */

static void add_gauge(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t end_ns,
                      int64_t value)
{
    const struct spread_steps *steps = &spread->steps;
    int64_t at_ns = begin_ns > steps->start_ns ? begin_ns : steps->start_ns;
    const int64_t to_ns = end_ns < steps->end_ns ? end_ns : steps->end_ns;
    while (at_ns < to_ns && !spread->is_stopped) {
        if (at_ns < spread->last_from_ns || at_ns >= spread->last_to_ns) {
            spread->last_step = spread_step_of(steps, at_ns);
            spread_find_step(steps, spread->last_step, &spread->last_from_ns, &spread->last_to_ns);
        }
        const int64_t until_ns = to_ns < spread->last_to_ns ? to_ns : spread->last_to_ns;
        add_to_step(spread, group, spread->last_step, (__int128)value * (until_ns - at_ns));
        at_ns = until_ns;
    }
}

/* ---- unknown durations ---- */

static bool is_in_window(const struct spread_steps *steps, int64_t time_ns)
{
    return time_ns >= steps->start_ns && time_ns < steps->end_ns;
}

void spread_add(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t duration_ns,
                int64_t value)
{
    if (duration_ns > 0) {
        add_known(spread, group, begin_ns, duration_ns, value);
        return;
    }
    vec_reserve(spread->unknown, spread->unknown_capacity, spread->unknown_sums + 1);
    spread->unknown[spread->unknown_sums++] =
        (struct spread_unknown){.time_ns = begin_ns, .value = value, .group = group};
}

void spread_add_part(struct spread *spread, uint32_t group, int64_t begin_ns, int64_t duration_ns,
                     int64_t before, int64_t value)
{
    add_known(spread, group, begin_ns, duration_ns, before + value);
    if (before)
        add_known(spread, group, begin_ns, duration_ns, -before);
}

static void note_duration(struct spread *spread, int64_t duration_ns)
{
    spread->shortest_ns = duration_ns < spread->shortest_ns ? duration_ns : spread->shortest_ns;
    spread->longest_ns = duration_ns > spread->longest_ns ? duration_ns : spread->longest_ns;
}

void spread_cover(struct spread *spread, int64_t begin_ns, int64_t duration_ns)
{
    if (duration_ns <= 0) {
        vec_reserve(spread->times_ns, spread->time_capacity, spread->time_count + 1);
        spread->times_ns[spread->time_count++] = begin_ns;
        spread->unknown_count += is_in_window(&spread->steps, begin_ns);
        return;
    }
    const int64_t end_ns = end_of(begin_ns, duration_ns);
    if (end_ns <= spread->steps.start_ns || begin_ns >= spread->steps.end_ns)
        return;
    note_duration(spread, duration_ns);
    coverage_add(&spread->covered, begin_ns, end_ns);
}

void spread_cover_span(struct spread *spread, int64_t begin_ns, int64_t end_ns, int64_t longest_ns)
{
    note_duration(spread, longest_ns);
    coverage_add(&spread->covered, begin_ns, end_ns);
}

void spread_note_hour(struct spread *spread, int64_t begin_ns)
{
    if (spread->hour_count && spread->hours_ns[spread->hour_count - 1] == begin_ns)
        return;
    vec_reserve(spread->hours_ns, spread->hour_capacity, spread->hour_count + 1);
    spread->hours_ns[spread->hour_count++] = begin_ns;
}

void spread_cover_overhang(struct spread *spread, int64_t hour_ns, int64_t over_ns)
{
    if (over_ns > 0)
        coverage_add(&spread->covered, hour_ns,
                     hour_ns + (over_ns < SPREAD_HOUR_NS ? over_ns : SPREAD_HOUR_NS));
}

bool spread_hour_add(struct spread_hour *hour, int64_t begin_ns, __int128 all_ns, int64_t over_ns)
{
    if (hour->begin_ns != begin_ns)
        *hour = (struct spread_hour){.begin_ns = begin_ns};
    hour->all_ns += all_ns;
    hour->over_ns = over_ns > hour->over_ns ? over_ns : hour->over_ns;
    if (hour->all_ns <= SPREAD_HOUR_NS || hour->over_ns <= SPREAD_HOUR_NS / 100 || hour->is_counted)
        return false;
    hour->is_counted = true;
    return true;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median of the distances; 0: there is only one begin. */
static int64_t find_interval(const struct spread *spread)
{
    const uint32_t count = spread->time_count - 1;
    if (!count)
        return 0;
    int64_t *distances_ns = mem_new(int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        distances_ns[i] = cadence_distance(spread->times_ns[i], spread->times_ns[i + 1]);
    qsort(distances_ns, count, sizeof(*distances_ns), compare_times);
    const int64_t interval_ns = distances_ns[(count - 1) / 2];
    mem_free(distances_ns);
    return interval_ns;
}

/* The time that the profiles of times_ns[i] cover. Empty when a delta is alone and outside the
 * window: it has no step. */
static void find_cover(const struct spread *spread, uint32_t i, int64_t *ret_begin_ns,
                       int64_t *ret_end_ns)
{
    const int64_t time_ns = spread->times_ns[i];
    *ret_begin_ns = time_ns;
    *ret_end_ns = cadence_end(spread->times_ns, spread->time_count, i);
    if (spread->time_count > 1)
        return;
    if (spread->are_gauges)
        *ret_end_ns = end_of(time_ns, SPREAD_LONE_NS);
    else if (is_in_window(&spread->steps, time_ns))
        spread_find_step(&spread->steps, spread_step_of(&spread->steps, time_ns), ret_begin_ns,
                         ret_end_ns);
}

static void cover_values(struct spread *spread)
{
    int64_t begin_ns = 0, end_ns = 0;
    uint32_t index = UINT32_MAX; /* values mostly come in order of time */
    for (uint32_t i = 0; i < spread->unknown_sums && !spread->is_stopped; i++) {
        const struct spread_unknown *one = &spread->unknown[i];
        if (index == UINT32_MAX || spread->times_ns[index] != one->time_ns) {
            const int64_t *found = bsearch(&one->time_ns, spread->times_ns, spread->time_count,
                                           sizeof(*spread->times_ns), compare_times);
            if (!found)
                continue;
            index = (uint32_t)(found - spread->times_ns);
            find_cover(spread, index, &begin_ns, &end_ns);
        }
        if (spread->are_gauges)
            add_gauge(spread, one->group, begin_ns, end_ns, one->value);
        else if (begin_ns < end_ns)
            add_known(spread, one->group, begin_ns, end_ns - begin_ns, one->value);
    }
}

/* The hour with totals only that contains the time; NULL: it is in none. */
static const int64_t *find_hour(const struct spread *spread, int64_t time_ns)
{
    const int64_t rest_ns = time_ns % SPREAD_HOUR_NS;
    const int64_t hour_ns = time_ns - rest_ns - (rest_ns < 0 ? SPREAD_HOUR_NS : 0);
    return spread->hour_count ? bsearch(&hour_ns, spread->hours_ns, spread->hour_count,
                                        sizeof(*spread->hours_ns), compare_times)
                              : NULL;
}

/* Covers the time of a delta that counts in an hour as a whole. Each delta counts in the sum of the
 * hour with at most two hours. */
static void cover_in_hour(struct spread *spread, int64_t begin_ns, int64_t end_ns, int64_t hour_ns,
                          struct spread_hour *hour)
{
    const int64_t left_ns = hour_ns + SPREAD_HOUR_NS - begin_ns, length_ns = end_ns - begin_ns;
    const int64_t over_ns = length_ns > left_ns ? length_ns - left_ns : 0;
    const int64_t most_ns = 2 * SPREAD_HOUR_NS;
    coverage_add(&spread->covered, begin_ns, end_ns - over_ns);
    spread_cover_overhang(spread, hour_ns, over_ns);
    spread->crowded_count +=
        spread_hour_add(hour, hour_ns, length_ns < most_ns ? length_ns : most_ns, over_ns);
}

static void cover_unknown(struct spread *spread)
{
    int64_t begin_ns, end_ns;
    struct spread_hour hour = {0};
    if (spread->hour_count)
        qsort(spread->hours_ns, spread->hour_count, sizeof(*spread->hours_ns), compare_times);
    spread->time_count = cadence_order(spread->times_ns, spread->time_count);
    spread->interval_ns = find_interval(spread);
    if (spread->interval_ns && spread->interval_ns < spread->shortest_ns)
        spread->shortest_ns = spread->interval_ns;
    for (uint32_t i = 0; i < spread->time_count; i++) {
        find_cover(spread, i, &begin_ns, &end_ns);
        const int64_t *hour_ns =
            spread->time_count > 1 ? find_hour(spread, spread->times_ns[i]) : NULL;
        if (begin_ns >= spread->steps.end_ns || end_ns <= spread->steps.start_ns)
            continue;
        if (hour_ns)
            cover_in_hour(spread, begin_ns, end_ns, *hour_ns, &hour);
        else
            coverage_add(&spread->covered, begin_ns, end_ns);
    }
    cover_values(spread);
}

/* The longest gap that counts as covered: a small part of the shortest duration, of a step and of
 * the window. */
static int64_t find_slack(const struct spread *spread)
{
    const struct spread_steps *steps = &spread->steps;
    const uint64_t window_ns = (uint64_t)steps->end_ns - (uint64_t)steps->start_ns;
    uint64_t least_ns = (uint64_t)spread->shortest_ns;
    least_ns = (uint64_t)steps->step_ns < least_ns ? (uint64_t)steps->step_ns : least_ns;
    least_ns = window_ns < least_ns ? window_ns : least_ns;
    return (int64_t)(least_ns / SPREAD_SLACK_PART);
}

void spread_end_series(struct spread *spread)
{
    if (spread->time_count)
        cover_unknown(spread);
    coverage_close(&spread->covered, find_slack(spread));
}

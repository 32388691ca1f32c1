/* Values over time of random profiles: sums add up to the total whatever the steps are, a constant
 * load is the same in all of them, and steps without data are left out. The reference computes
 * each profile and step separately. */
#include "tests/unit/store/random_batch.h"
#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "store/values/cadence.h"
#include "store/values/spread.h"

#include <math.h>
#include <string.h>

enum { SERIES_MAX = 4, PROFILES_MAX = 400, STEPS_MAX = 4000 };
#define SEEDS ((uint64_t)test_rounds(2000))

struct one_profile {
    int64_t time_ns;
    int64_t duration_ns; /* 0: not sent */
    int64_t value;
};

struct one_series {
    struct one_profile profiles[PROFILES_MAX];
    uint32_t count;
    double per_ns; /* the constant load */
};

/* One group over all series. */
struct sums {
    __int128 sums[STEPS_MAX];
    uint64_t covered_ns[STEPS_MAX];
    __int128 total;
    uint64_t all_covered_ns;
    uint32_t step_count;
    int64_t interval_ns;
    uint64_t unknown_count;
};

static int64_t random_between(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(random_next(seed) % (uint64_t)(high - low + 1));
}

static int64_t random_duration(uint64_t *seed)
{
    static const int64_t usual_s[] = {1, 5, 10, 10, 15, 60, 300};
    if (random_below(seed, 3))
        return usual_s[random_below(seed, 7)] * CLOCK_NS_PER_S;
    return random_between(seed, CLOCK_NS_PER_S / 10, 100 * CLOCK_NS_PER_S);
}

/* Consecutive windows, some slightly late, like those of an agent that reads the clock twice;
 * sometimes some are missing, or the cadence changes. */
static void make_series(uint64_t *seed, int64_t begin_ns, int64_t end_ns, struct one_series *series)
{
    int64_t duration_ns = random_duration(seed), at_ns;
    at_ns = begin_ns + random_between(seed, 0, duration_ns);
    *series = (struct one_series){.per_ns = (double)random_between(seed, 1, 8000) / 1000};
    while (at_ns < end_ns && series->count < PROFILES_MAX) {
        const int64_t late_ns =
            random_below(seed, 2) ? 0 : random_between(seed, 0, duration_ns / 400);
        series->profiles[series->count++] =
            (struct one_profile){.time_ns = at_ns,
                                 .duration_ns = duration_ns,
                                 .value = llround(series->per_ns * (double)duration_ns)};
        at_ns += duration_ns + late_ns;
        if (random_below(seed, 40) == 0)
            at_ns += random_between(seed, 1, 20) * duration_ns;
        if (random_below(seed, 60) == 0)
            duration_ns = random_duration(seed);
    }
}

static void add_series(struct spread *spread, const struct one_series *series)
{
    for (uint32_t i = 0; i < series->count; i++) {
        const struct one_profile *profile = &series->profiles[i];
        spread_add(spread, 0, profile->time_ns, profile->duration_ns, profile->value);
        spread_cover(spread, profile->time_ns, profile->duration_ns);
    }
}

static void sum_up(const struct one_series *series, uint32_t series_count,
                   const struct spread_steps *steps, struct sums *sums)
{
    struct spread spread;
    struct coverage covered = {0};
    spread_init(&spread, steps);
    *sums = (struct sums){.step_count = (uint32_t)spread_count_steps(steps)};
    assert_true(sums->step_count <= STEPS_MAX);
    for (uint32_t i = 0; i < series_count; i++) {
        spread_begin_series(&spread);
        add_series(&spread, &series[i]);
        spread_end_series(&spread);
        for (uint32_t j = 0; j < spread.sum_count; j++)
            sums->sums[spread.sums[j].step] += spread.sums[j].sum;
        coverage_unite(&covered, &spread.covered);
    }
    sums->interval_ns = spread.interval_ns;
    sums->unknown_count = spread.unknown_count;
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < sums->step_count; i++) {
        int64_t begin_ns, end_ns;
        spread_find_step(steps, i, &begin_ns, &end_ns);
        sums->covered_ns[i] = coverage_within(&covered, &cursor, begin_ns, end_ns);
        sums->all_covered_ns += sums->covered_ns[i];
        sums->total += sums->sums[i];
    }
    coverage_fini(&covered);
    spread_fini(&spread);
}

static struct spread_steps random_steps(uint64_t *seed, int64_t start_ns, int64_t end_ns)
{
    static const int64_t round_s[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 3600};
    struct spread_steps steps = {.start_ns = start_ns, .end_ns = end_ns};
    do {
        steps.step_ns = random_below(seed, 3)
                            ? round_s[random_below(seed, 11)] * CLOCK_NS_PER_S
                            : random_between(seed, CLOCK_NS_PER_S / 2, 2000 * CLOCK_NS_PER_S);
        const int64_t past_ns = (start_ns % steps.step_ns + steps.step_ns) % steps.step_ns;
        steps.lead_ns = random_below(seed, 2) ? past_ns : 0;
    } while (spread_count_steps(&steps) > STEPS_MAX);
    return steps;
}

/* The reference for [from, to), in 1 / SPREAD_UNIT, profile by profile, as defined in
 * store/values/spread.h. */
static __int128 plain_sum(const struct one_series *series, uint32_t series_count, int64_t from_ns,
                          int64_t to_ns)
{
    __int128 sum = 0;
    for (uint32_t i = 0; i < series_count; i++) {
        for (uint32_t j = 0; j < series[i].count; j++) {
            const struct one_profile *one = &series[i].profiles[j];
            const int64_t end_ns = one->time_ns + one->duration_ns;
            const int64_t first_ns = one->time_ns > from_ns ? one->time_ns : from_ns;
            const int64_t last_ns = end_ns < to_ns ? end_ns : to_ns;
            const __int128 value = (__int128)one->value * SPREAD_UNIT;
            if (first_ns < last_ns)
                sum += value * (last_ns - one->time_ns) / one->duration_ns -
                       value * (first_ns - one->time_ns) / one->duration_ns;
        }
    }
    return sum;
}

static bool is_covered(const struct one_series *series, uint32_t series_count, int64_t from_ns,
                       int64_t to_ns)
{
    for (uint32_t i = 0; i < series_count; i++) {
        for (uint32_t j = 0; j < series[i].count; j++) {
            const struct one_profile *one = &series[i].profiles[j];
            if (one->time_ns < to_ns && one->time_ns + one->duration_ns > from_ns)
                return true;
        }
    }
    return false;
}

/* Each series has its whole load or none at any time, so the rate of a step is at least the
 * smallest load and at most the sum of all. */
static void check_steps(const struct one_series *series, uint32_t series_count,
                        const struct spread_steps *steps, const struct sums *sums)
{
    double all_per_ns = 0, least_per_ns = HUGE_VAL;
    for (uint32_t i = 0; i < series_count; i++) {
        all_per_ns += series[i].per_ns;
        least_per_ns = fmin(least_per_ns, series[i].per_ns);
    }
    for (uint32_t i = 0; i < sums->step_count; i++) {
        int64_t begin_ns, end_ns;
        spread_find_step(steps, i, &begin_ns, &end_ns);
        assert_true(sums->sums[i] == plain_sum(series, series_count, begin_ns, end_ns));
        if (!sums->covered_ns[i]) {
            assert_true(sums->sums[i] == 0);
            assert_false(is_covered(series, series_count, begin_ns, end_ns));
            continue;
        }
        assert_true(sums->covered_ns[i] <= (uint64_t)(end_ns - begin_ns));
        const double per_ns = (double)sums->sums[i] / SPREAD_UNIT / (double)sums->covered_ns[i];
        assert_true(per_ns <= all_per_ns * 1.01);
        if (end_ns - begin_ns == steps->step_ns) /* the edges of the window can truncate steps */
            assert_true(per_ns >= least_per_ns * 0.99);
    }
}

/* Some windows, or sequences of windows, of each series become idle. */
static void make_idle(uint64_t *seed, struct one_series *series, uint32_t series_count)
{
    for (uint32_t i = 0; i < series_count; i++) {
        bool is_idle = random_below(seed, 4) == 0;
        for (uint32_t j = 0; j < series[i].count; j++) {
            is_idle ^= random_below(seed, 5) == 0;
            if (is_idle)
                series[i].profiles[j].value = 0;
        }
    }
}

/* Idle windows are covered as if they had values, in each step and in total. */
static void check_idle(uint64_t *seed, struct one_series *series, uint32_t series_count,
                       const struct spread_steps *steps, const struct sums *busy)
{
    static struct sums idle;
    make_idle(seed, series, series_count);
    sum_up(series, series_count, steps, &idle);
    assert_true(idle.all_covered_ns == busy->all_covered_ns);
    assert_true(idle.total == plain_sum(series, series_count, steps->start_ns, steps->end_ns));
    for (uint32_t i = 0; i < idle.step_count; i++) {
        int64_t begin_ns, end_ns;
        spread_find_step(steps, i, &begin_ns, &end_ns);
        assert_true(idle.covered_ns[i] == busy->covered_ns[i]);
        assert_true(idle.sums[i] == plain_sum(series, series_count, begin_ns, end_ns));
    }
}

static void sums_are_the_same_in_all_steps(void **state)
{
    static struct one_series series[SERIES_MAX];
    static struct sums fine, coarse;
    (void)state;
    for (uint64_t round = 1; round <= SEEDS; round++) {
        uint64_t seed = round * UINT64_C(0x9E3779B97F4A7C15);
        const int64_t begin_ns = random_between(&seed, -1000000, 1790000000) * CLOCK_NS_PER_S;
        const int64_t end_ns = begin_ns + random_between(&seed, 60, 3600) * CLOCK_NS_PER_S;
        const uint32_t count = 1 + random_below(&seed, SERIES_MAX);
        int64_t total = 0;
        for (uint32_t i = 0; i < count; i++) {
            make_series(&seed, begin_ns, end_ns, &series[i]);
            for (uint32_t j = 0; j < series[i].count; j++)
                total += series[i].profiles[j].value;
        }
        /* Steps that contain all series: the integral is the total. */
        struct spread_steps steps =
            random_steps(&seed, begin_ns - 3600 * CLOCK_NS_PER_S, end_ns + 3600 * CLOCK_NS_PER_S);
        sum_up(series, count, &steps, &fine);
        assert_true(fine.total == (__int128)total * SPREAD_UNIT);
        check_steps(series, count, &steps, &fine);
        /* Steps that contain a part: the sum and the average do not depend on the steps. */
        const int64_t from_ns = random_between(&seed, begin_ns, end_ns - CLOCK_NS_PER_S);
        const int64_t to_ns = random_between(&seed, from_ns + CLOCK_NS_PER_S, end_ns);
        steps = random_steps(&seed, from_ns, to_ns);
        sum_up(series, count, &steps, &fine);
        check_steps(series, count, &steps, &fine);
        steps = random_steps(&seed, from_ns, to_ns);
        sum_up(series, count, &steps, &coarse);
        assert_true(fine.total == coarse.total);
        /* Small gaps are closed if they are small compared to a step, too. */
        const double differs_ns = fabs((double)fine.all_covered_ns - (double)coarse.all_covered_ns);
        assert_true(differs_ns <= (double)coarse.all_covered_ns * 2 / SPREAD_SLACK_PART +
                                      (double)(to_ns - from_ns) / SPREAD_SLACK_PART);
        assert_true(fine.total == plain_sum(series, count, from_ns, to_ns));
        check_idle(&seed, series, count, &steps, &coarse);
    }
}

/* One series: a step has its load or no data, wherever the step is. */
static void a_constant_load_is_flat_in_every_step(void **state)
{
    static struct one_series series;
    static struct sums sums;
    double worst = 0;
    (void)state;
    for (uint64_t round = 1; round <= SEEDS; round++) {
        uint64_t seed = round * UINT64_C(0xD1B54A32D192ED03);
        const int64_t begin_ns = random_between(&seed, 0, 1790000000) * CLOCK_NS_PER_S;
        const int64_t end_ns = begin_ns + random_between(&seed, 600, 7200) * CLOCK_NS_PER_S;
        make_series(&seed, begin_ns, end_ns, &series);
        const struct spread_steps steps = random_steps(&seed, begin_ns, end_ns);
        sum_up(&series, 1, &steps, &sums);
        for (uint32_t i = 0; i < sums.step_count; i++) {
            int64_t from_ns, to_ns;
            spread_find_step(&steps, i, &from_ns, &to_ns);
            if (!sums.covered_ns[i] || to_ns - from_ns < steps.step_ns)
                continue; /* the edges of the window can truncate steps */
            const double per_ns = (double)sums.sums[i] / SPREAD_UNIT / (double)sums.covered_ns[i];
            worst = fmax(worst, fabs(per_ns / series.per_ns - 1));
            assert_true(fabs(per_ns / series.per_ns - 1) <= 0.01);
        }
        const double average = (double)sums.total / SPREAD_UNIT / (double)sums.all_covered_ns;
        assert_true(fabs(average / series.per_ns - 1) <= 0.01);
    }
    print_message("a constant load deviates by %.3f %% at most\n", 100 * worst);
}

/* A profile without a duration covers the time until the next one, unless the distance is a gap
 * (store/values/cadence.h). Gaps are five intervals long here. At most two of five successive
 * distances are gaps, so that the median of the five stays the interval. */
static void profiles_without_a_duration_cover_their_interval(void **state)
{
    static struct one_series series;
    static struct sums sums;
    (void)state;
    for (uint64_t round = 1; round <= SEEDS; round++) {
        uint64_t seed = round * UINT64_C(0xA0761D6478BD642F);
        const int64_t interval_ns = random_between(&seed, 1, 60) * CLOCK_NS_PER_S;
        const int64_t begin_ns = random_between(&seed, 0, 1790000000) * CLOCK_NS_PER_S;
        int64_t at_ns = begin_ns, total = 0;
        uint32_t since_gaps = 0; /* a bit for each distance, the last one lowest: was it a gap? */
        series = (struct one_series){.per_ns = 1.95};
        for (uint32_t i = 0; i < 60; i++) {
            const int64_t value = llround(1.95 * (double)interval_ns);
            series.profiles[series.count++] =
                (struct one_profile){.time_ns = at_ns, .value = value};
            total += value;
            const bool is_gap = i > 3 && i < 55 && __builtin_popcount(since_gaps & 15) < 2 &&
                                random_below(&seed, 20) == 0;
            since_gaps = since_gaps << 1 | is_gap;
            at_ns += interval_ns * (is_gap ? 5 : 1);
        }
        const int64_t end_ns = series.profiles[59].time_ns + interval_ns;
        const struct spread_steps steps = random_steps(&seed, begin_ns, end_ns);
        sum_up(&series, 1, &steps, &sums);
        assert_true(sums.total == (__int128)total * SPREAD_UNIT);
        assert_true(sums.interval_ns == interval_ns && sums.unknown_count == 60);
        assert_true(sums.all_covered_ns == (uint64_t)(60 * interval_ns));
        for (uint32_t i = 0; i < sums.step_count; i++) {
            const double per_ns = (double)sums.sums[i] / SPREAD_UNIT / (double)sums.covered_ns[i];
            assert_true(!sums.covered_ns[i] ? sums.sums[i] == 0 : fabs(per_ns / 1.95 - 1) <= 0.01);
        }
        make_idle(&seed, &series, 1);
        total = 0;
        for (uint32_t i = 0; i < series.count; i++)
            total += series.profiles[i].value;
        sum_up(&series, 1, &steps, &sums);
        assert_true(sums.total == (__int128)total * SPREAD_UNIT);
        assert_true(sums.all_covered_ns == (uint64_t)(60 * interval_ns));
    }
}

/* Profiles without a duration and with a constant load. Either their distance may change every 8
 * profiles, or two distances alternate, as with two senders. */
static void make_cadences(uint64_t *seed, int64_t begin_ns, struct one_series *series)
{
    static const int64_t usual_s[] = {5, 10, 15, 30, 60, 300};
    const bool alternates = random_below(seed, 3) == 0;
    int64_t at_ns = begin_ns, one_ns = 0, other_ns = 0;
    *series = (struct one_series){.per_ns = (double)random_between(seed, 1, 8000) / 1000};
    for (uint32_t i = 0; i < 120; i++) {
        if (i == 0 || (!alternates && i % 8 == 0))
            one_ns = other_ns = usual_s[random_below(seed, 6)] * CLOCK_NS_PER_S;
        if (i == 0 && alternates)
            other_ns = usual_s[random_below(seed, 6)] * CLOCK_NS_PER_S;
        const int64_t distance_ns = i % 2 ? one_ns : other_ns;
        series->profiles[series->count++] = (struct one_profile){
            .time_ns = at_ns, .value = llround(series->per_ns * (double)distance_ns)};
        at_ns += distance_ns;
    }
}

/* The profiles of the window, and as many around it as their cadence needs. */
static void cut_series(const struct one_series *series, int64_t from_ns, int64_t to_ns,
                       struct one_series *ret_part)
{
    uint32_t first = 0, end = series->count;
    while (first + 1 < series->count && series->profiles[first].time_ns < from_ns)
        first++;
    while (end > 1 && series->profiles[end - 1].time_ns >= to_ns)
        end--;
    first = first > CADENCE_NEIGHBOURS ? first - CADENCE_NEIGHBOURS : 0;
    end = end + CADENCE_NEIGHBOURS < series->count ? end + CADENCE_NEIGHBOURS : series->count;
    *ret_part = (struct one_series){.per_ns = series->per_ns};
    for (uint32_t i = first; i < end; i++)
        ret_part->profiles[ret_part->count++] = series->profiles[i];
}

static void sum_up_part(const struct one_series *series, const struct spread_steps *steps,
                        struct sums *sums)
{
    static struct one_series part;
    cut_series(series, steps->start_ns, steps->end_ns, &part);
    sum_up(&part, 1, steps, sums);
}

/* If profiles are contiguous, the average is the load, and the totals of two adjacent windows add
 * up to that of the window that contains both. */
static void a_change_of_cadence_changes_no_average(void **state)
{
    static struct one_series series;
    static struct sums sums, rest;
    (void)state;
    for (uint64_t round = 1; round <= SEEDS; round++) {
        uint64_t seed = round * UINT64_C(0x9FB21C651E98DF25);
        const int64_t begin_ns = random_between(&seed, 0, 1790000000) * CLOCK_NS_PER_S;
        make_cadences(&seed, begin_ns, &series);
        const int64_t first_ns = series.profiles[4].time_ns, last_ns = series.profiles[115].time_ns;
        const int64_t from_ns = random_between(&seed, first_ns, last_ns - 20 * CLOCK_NS_PER_S);
        const int64_t to_ns = random_between(&seed, from_ns + 10 * CLOCK_NS_PER_S, last_ns);
        struct spread_steps steps = random_steps(&seed, from_ns, to_ns);
        sum_up_part(&series, &steps, &sums);
        for (uint32_t i = 0; i < sums.step_count; i++) {
            const double per_ns = (double)sums.sums[i] / SPREAD_UNIT / (double)sums.covered_ns[i];
            if (sums.covered_ns[i] > (uint64_t)CLOCK_NS_PER_S / 10)
                assert_true(fabs(per_ns / series.per_ns - 1) <= 0.01);
        }
        const double average = (double)sums.total / SPREAD_UNIT / (double)sums.all_covered_ns;
        assert_true(fabs(average / series.per_ns - 1) <= 0.01);
        const __int128 total = sums.total;
        const int64_t middle_ns = random_between(&seed, from_ns + 1, to_ns - 1);
        steps = random_steps(&seed, from_ns, middle_ns);
        sum_up_part(&series, &steps, &sums);
        steps = random_steps(&seed, middle_ns, to_ns);
        sum_up_part(&series, &steps, &rest);
        assert_true(sums.total + rest.total == total);
    }
}

/* ---- gauges ---- */

enum { PODS_MAX = 30, LEVEL_SECONDS = 5000 };

/* The value of each second, pod by pod; times in seconds since the first. */
struct gauges {
    int64_t sums[LEVEL_SECONDS];
    bool is_covered[LEVEL_SECONDS];
};

/* A pod lives for some time and has a snapshot at regular intervals, sometimes after a gap. */
static void make_pod(uint64_t *seed, struct one_series *pod, struct gauges *gauges)
{
    int64_t at = random_between(seed, -300, LEVEL_SECONDS - 200);
    const int64_t end = at + random_between(seed, 100, 4000),
                  interval = random_between(seed, 2, 90);
    uint32_t gaps = 0;
    *pod = (struct one_series){0};
    while (pod->count < 3 || (at < end && pod->count < PROFILES_MAX)) {
        const bool is_gap =
            __builtin_popcount(gaps & 15) == 0 && pod->count > 3 && random_below(seed, 20) == 0;
        const int64_t value = random_between(seed, 0, 1 << 30);
        gaps = gaps << 1 | is_gap;
        for (int64_t i = at < 0 ? 0 : at; i < at + interval && i < LEVEL_SECONDS; i++) {
            gauges->sums[i] += value;
            gauges->is_covered[i] = true;
        }
        pod->profiles[pod->count++] =
            (struct one_profile){.time_ns = at * CLOCK_NS_PER_S, .value = value};
        at += interval * (is_gap ? random_between(seed, 2, 9) : 1);
    }
}

static void sum_up_gauges(const struct one_series *pods, uint32_t count,
                          const struct spread_steps *steps, struct sums *sums)
{
    struct spread spread;
    struct coverage covered = {0};
    uint32_t cursor = 0;
    spread_init(&spread, steps);
    spread.are_gauges = true;
    *sums = (struct sums){.step_count = (uint32_t)spread_count_steps(steps)};
    for (uint32_t i = 0; i < count; i++) {
        spread_begin_series(&spread);
        add_series(&spread, &pods[i]);
        spread_end_series(&spread);
        for (uint32_t j = 0; j < spread.sum_count; j++)
            sums->sums[spread.sums[j].step] += spread.sums[j].sum;
        coverage_unite(&covered, &spread.covered);
    }
    for (uint32_t i = 0; i < sums->step_count; i++) {
        int64_t begin_ns, end_ns;
        spread_find_step(steps, i, &begin_ns, &end_ns);
        sums->covered_ns[i] = coverage_within(&covered, &cursor, begin_ns, end_ns);
        sums->all_covered_ns += sums->covered_ns[i];
        sums->total += sums->sums[i];
    }
    coverage_fini(&covered);
    spread_fini(&spread);
}

/* Pods come and go: each step has the integral of their sum and the time in which any of them
 * exists. */
static void gauges_are_integrals_for_any_steps(void **state)
{
    static struct one_series pods[PODS_MAX];
    static struct gauges gauges;
    static struct sums sums;
    (void)state;
    for (uint64_t round = 1; round <= SEEDS; round++) {
        uint64_t seed = round * UINT64_C(0xC2B2AE3D27D4EB4F);
        const uint32_t count = 1 + random_below(&seed, PODS_MAX);
        memset(&gauges, 0, sizeof(gauges));
        for (uint32_t i = 0; i < count; i++)
            make_pod(&seed, &pods[i], &gauges);
        struct spread_steps steps = {.start_ns = random_between(&seed, 0, 2000) * CLOCK_NS_PER_S};
        steps.end_ns = steps.start_ns + random_between(&seed, 1, 2900) * CLOCK_NS_PER_S;
        steps.step_ns = random_between(&seed, 1, 4000) * CLOCK_NS_PER_S;
        sum_up_gauges(pods, count, &steps, &sums);
        for (uint32_t i = 0; i < sums.step_count; i++) {
            int64_t begin_ns, end_ns, covered = 0;
            __int128 sum = 0;
            spread_find_step(&steps, i, &begin_ns, &end_ns);
            for (int64_t at = begin_ns / CLOCK_NS_PER_S; at < end_ns / CLOCK_NS_PER_S; at++) {
                sum += (__int128)gauges.sums[at] * CLOCK_NS_PER_S;
                covered += gauges.is_covered[at];
            }
            assert_true(sums.sums[i] == sum);
            assert_int_equal(sums.covered_ns[i], covered * CLOCK_NS_PER_S);
        }
    }
}

static void a_profile_alone_without_a_duration_is_in_its_step(void **state)
{
    static struct sums sums;
    const struct one_series series = {.profiles = {{.time_ns = 73 * CLOCK_NS_PER_S, .value = 600}},
                                      .count = 1};
    const struct spread_steps steps = {.start_ns = 20 * CLOCK_NS_PER_S,
                                       .end_ns = 140 * CLOCK_NS_PER_S,
                                       .lead_ns = 20 * CLOCK_NS_PER_S,
                                       .step_ns = 60 * CLOCK_NS_PER_S};
    (void)state;
    sum_up(&series, 1, &steps, &sums);
    assert_int_equal(sums.step_count, 3);
    assert_int_equal(sums.sums[1] / SPREAD_UNIT, 600);
    assert_int_equal(sums.covered_ns[1], 60 * CLOCK_NS_PER_S);
    assert_int_equal(sums.all_covered_ns, 60 * CLOCK_NS_PER_S);
    assert_int_equal(sums.interval_ns, 0);
}

/* Each hour has 25 minutes of windows of ten seconds, covered by one span or by each window. */
static uint64_t cover_hours(bool is_in_spans, int64_t step_ns)
{
    const int64_t day_ns = 86400 * CLOCK_NS_PER_S, window_ns = 10 * CLOCK_NS_PER_S;
    const struct spread_steps steps = {.end_ns = 7 * day_ns, .step_ns = step_ns};
    uint64_t covered_ns;
    uint32_t cursor = 0;
    struct spread spread;
    spread_init(&spread, &steps);
    spread_begin_series(&spread);
    for (int64_t hour = 0; hour < 7 * 24; hour++) {
        const int64_t begin_ns = hour * 3600 * CLOCK_NS_PER_S;
        const int64_t end_ns = begin_ns + 25 * 60 * CLOCK_NS_PER_S;
        if (is_in_spans)
            spread_cover_span(&spread, begin_ns, end_ns, window_ns);
        for (int64_t at_ns = begin_ns; !is_in_spans && at_ns < end_ns; at_ns += window_ns)
            spread_cover(&spread, at_ns, window_ns);
    }
    spread_end_series(&spread);
    covered_ns = coverage_within(&spread.covered, &cursor, 0, steps.end_ns);
    spread_fini(&spread);
    return covered_ns;
}

static void gaps_between_spans_stay_gaps_in_steps_of_days(void **state)
{
    static const int64_t steps_s[] = {3600, 86400, 7 * 86400};
    (void)state;
    for (size_t i = 0; i < sizeof(steps_s) / sizeof(steps_s[0]); i++) {
        const int64_t step_ns = steps_s[i] * CLOCK_NS_PER_S;
        assert_int_equal(cover_hours(false, step_ns), INT64_C(7) * 24 * 1500 * CLOCK_NS_PER_S);
        assert_int_equal(cover_hours(true, step_ns), INT64_C(7) * 24 * 1500 * CLOCK_NS_PER_S);
    }
}

/* Ends and products of any valid profile stay within their types. */
static void durations_of_centuries_overflow_nothing(void **state)
{
    static struct sums sums;
    const struct one_series series = {.profiles = {{.time_ns = -INT64_C(9000000000000000000),
                                                    .duration_ns = INT64_MAX,
                                                    .value = INT64_MAX / 2},
                                                   {.time_ns = INT64_C(9000000000000000000),
                                                    .duration_ns = INT64_MAX,
                                                    .value = -INT64_MAX / 2}},
                                      .count = 2};
    const struct spread_steps steps = {.start_ns = 0,
                                       .end_ns = INT64_C(9223372036000000000),
                                       .step_ns = INT64_C(9000000000000000000) / 10};
    (void)state;
    sum_up(&series, 1, &steps, &sums);
    assert_int_equal(sums.step_count, 11);
    assert_true(sums.total > -((__int128)INT64_MAX * SPREAD_UNIT) &&
                sums.total < (__int128)INT64_MAX * SPREAD_UNIT);
    assert_true(sums.all_covered_ns <= (uint64_t)steps.end_ns);
}

/* The same spans, one after another and together. */
static void coverage_is_the_union(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= SEEDS; round++) {
        uint64_t seed = round * UINT64_C(0xE7037ED1A0B428DB);
        bool is_there[256] = {false};
        struct coverage parts[3] = {{0}}, all = {0};
        for (uint32_t i = 0; i < 30; i++) {
            const uint32_t begin = random_below(&seed, 250), end = begin + random_below(&seed, 7);
            coverage_add(&parts[i % 3], begin, end);
            for (uint32_t at = begin; at < end && at < 256; at++)
                is_there[at] = true;
        }
        for (uint32_t i = 0; i < 3; i++) {
            coverage_close(&parts[i], 0);
            coverage_unite(&all, &parts[i]);
            coverage_fini(&parts[i]);
        }
        uint32_t cursor = 0;
        const uint32_t step = 1 + random_below(&seed, 40);
        for (uint32_t at = 0; at < 256; at += step) {
            uint64_t count = 0;
            for (uint32_t i = at; i < at + step && i < 256; i++)
                count += is_there[i];
            const uint32_t end = at + step < 256 ? at + step : 256;
            assert_int_equal(coverage_within(&all, &cursor, at, end), count);
        }
        coverage_fini(&all);
    }
}

static void the_first_time_that_is_not_before_is_found(void **state)
{
    (void)state;
    static const int64_t times_ns[] = {-5, 0, 10, 20, 30};
    static const struct {
        int64_t at_ns;
        uint32_t index;
    } cases[] = {{INT64_MIN, 0}, {-5, 0}, {-4, 1}, {0, 1}, {1, 2}, {20, 3}, {30, 4}, {31, 5}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(cadence_find(times_ns, 5, cases[i].at_ns), cases[i].index);
    assert_int_equal(cadence_find(times_ns, 0, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_time_that_is_not_before_is_found),
        cmocka_unit_test(sums_are_the_same_in_all_steps),
        cmocka_unit_test(a_constant_load_is_flat_in_every_step),
        cmocka_unit_test(profiles_without_a_duration_cover_their_interval),
        cmocka_unit_test(a_change_of_cadence_changes_no_average),
        cmocka_unit_test(gauges_are_integrals_for_any_steps),
        cmocka_unit_test(a_profile_alone_without_a_duration_is_in_its_step),
        cmocka_unit_test(gaps_between_spans_stay_gaps_in_steps_of_days),
        cmocka_unit_test(durations_of_centuries_overflow_nothing),
        cmocka_unit_test(coverage_is_the_union),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "store/values/cadence.h"

#include <stdlib.h>

enum { AROUND = 2 };

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

uint32_t cadence_order(int64_t *times_ns, uint32_t count)
{
    uint32_t kept = 0;
    if (!count)
        return 0;
    qsort(times_ns, count, sizeof(*times_ns), compare_times);
    for (uint32_t i = 1; i < count; i++) {
        if (times_ns[i] != times_ns[kept])
            times_ns[++kept] = times_ns[i];
    }
    return kept + 1;
}

int64_t cadence_distance(int64_t from_ns, int64_t to_ns)
{
    int64_t distance_ns;
    return __builtin_sub_overflow(to_ns, from_ns, &distance_ns) ? INT64_MAX : distance_ns;
}

/* Insertion sort of at most five numbers. */
static uint32_t insert(int64_t *sorted, uint32_t count, int64_t value)
{
    uint32_t at = count;
    for (; at && sorted[at - 1] > value; at--)
        sorted[at] = sorted[at - 1];
    sorted[at] = value;
    return count + 1;
}

int64_t cadence_interval(const int64_t *times_ns, uint32_t count, uint32_t i)
{
    int64_t sorted[2 * AROUND + 1];
    const uint32_t last = i + AROUND < count ? i + AROUND : count - 1; /* distances before it */
    uint32_t found = 0;
    for (uint32_t at = i < AROUND ? 0 : i - AROUND; at <= last && at + 1 < count; at++)
        found = insert(sorted, found, cadence_distance(times_ns[at], times_ns[at + 1]));
    /* At an edge there may be four distances: the third is taken, so that two alternating distances
     * are no gaps. */
    return found ? sorted[found == 4 ? 2 : (found - 1) / 2] : 0;
}

int64_t cadence_longest(int64_t interval_ns)
{
    return interval_ns > INT64_MAX / 2 ? INT64_MAX : interval_ns + interval_ns / 2;
}

uint32_t cadence_find(const int64_t *times_ns, uint32_t count, int64_t at_ns)
{
    uint32_t first = 0;
    while (count > 0) {
        const uint32_t half = count / 2;
        if (times_ns[first + half] < at_ns) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

int64_t cadence_end(const int64_t *times_ns, uint32_t count, uint32_t i)
{
    const int64_t interval_ns = cadence_interval(times_ns, count, i);
    int64_t end_ns;
    if (i + 1 < count &&
        cadence_distance(times_ns[i], times_ns[i + 1]) <= cadence_longest(interval_ns))
        return times_ns[i + 1];
    return __builtin_add_overflow(times_ns[i], interval_ns, &end_ns) ? INT64_MAX : end_ns;
}

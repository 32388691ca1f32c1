#include "store/values/apportion.h"

#include "lib/base/arena.h"
#include "store/values/spread.h"

#include <stdbool.h>
#include <stdlib.h>

static int64_t round_sum(__int128 sum)
{
    return (int64_t)((sum + SPREAD_UNIT / 2) >> SPREAD_UNIT_BITS);
}

/* The group's deficit after this step, in 1 / SPREAD_UNIT. */
static __int128 lack_of(const struct apportion_group *group)
{
    return group->running - (__int128)(group->given + group->value) * SPREAD_UNIT;
}

static bool can_change(const struct apportion_group *group, int by)
{
    return group->sum * by > 0 || (group->sum && group->value * by < 0);
}

struct ordering {
    const struct apportion_group *groups;
    int by;
};

/* For units that are added, the group that lacks most is first; for units that are taken, the one
 * that lacks least. */
static int compare_lacks(const void *a, const void *b, void *context)
{
    const struct ordering *ordering = context;
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    const __int128 x = lack_of(&ordering->groups[one]) * ordering->by;
    const __int128 y = lack_of(&ordering->groups[other]) * ordering->by;
    return x != y ? (x < y) - (x > y) : (one > other) - (one < other);
}

/* Adds or takes one unit of the groups in order. Returns how much of rest is left. */
static int64_t change_values(struct apportion *apportion, int64_t rest)
{
    struct ordering ordering = {.groups = apportion->groups, .by = rest > 0 ? 1 : -1};
    uint32_t count = 0;
    for (uint32_t i = 0; i < apportion->count; i++) {
        if (can_change(&apportion->groups[i], ordering.by))
            apportion->order[count++] = i;
    }
    qsort_r(apportion->order, count, sizeof(*apportion->order), compare_lacks, &ordering);
    for (uint32_t i = 0; i < count && rest; i++) {
        apportion->groups[apportion->order[i]].value += ordering.by;
        rest -= ordering.by;
    }
    return rest;
}

static int64_t nearest_value(const struct apportion_group *group)
{
    const int64_t value = round_sum(group->running) - group->given;
    const bool has_sign_of_sum = group->sum > 0 ? value > 0 : group->sum < 0 && value < 0;
    return has_sign_of_sum ? value : 0;
}

struct apportion apportion_create(struct arena *arena, uint32_t count)
{
    return (struct apportion){.groups = arena_new(arena, struct apportion_group, count),
                              .order = arena_new(arena, uint32_t, count),
                              .count = count};
}

void apportion_step(struct apportion *apportion)
{
    int64_t rest = -apportion->given, before = 0;
    for (uint32_t i = 0; i < apportion->count; i++) {
        struct apportion_group *group = &apportion->groups[i];
        group->running += group->sum;
        apportion->running += group->sum;
        group->value = nearest_value(group);
        rest -= group->value;
    }
    rest += round_sum(apportion->running);
    while (rest && rest != before) {
        before = rest;
        rest = change_values(apportion, rest);
    }
    for (uint32_t i = 0; i < apportion->count; i++) {
        apportion->groups[i].given += apportion->groups[i].value;
        apportion->given += apportion->groups[i].value;
    }
}

/*
 * apportion: rounds the values of several groups in each step to whole numbers.
 *
 * Values are sums with SPREAD_UNIT_BITS fraction bits. In each step the whole numbers of the groups
 * add up to the whole number of all groups together, which is (running sum of all groups, rounded)
 * - (whole numbers of all earlier steps). First each group gets the number that brings the sum of
 * its own numbers nearest to its running sum. Then, until the sum is right, units are added to the
 * groups with the largest deficit, or taken from those with the smallest. A group that got too
 * little in one step is therefore first in the next. So each group's total is right to about one,
 * and no number has another sign than its value.
 *
 * Example: groups A and B have 0.5 in each of two steps, so all groups together have 1 in each
 * step. In the first step both round to 1, and one unit is taken from B: A has 1, B has 0. In the
 * second step A's running sum is 1, which it has got already, and B gets 1.
 *
 * Units that no group can take without a change of sign are given in a later step. Threads: an
 * object belongs to one thread. Private to store/.
 */
#ifndef STORE_VALUES_APPORTION_H
#define STORE_VALUES_APPORTION_H

#include <stdint.h>

struct arena;

struct apportion_group {
    __int128 sum;  /* in: of the step */
    int64_t value; /* out: the whole number for it */
    __int128 running;
    int64_t given;
};

struct apportion {
    struct apportion_group *groups;
    uint32_t *order; /* space for one number per group */
    uint32_t count;
    __int128 running; /* of all groups */
    int64_t given;
};

/* All memory is in arena. */
struct apportion apportion_create(struct arena *arena, uint32_t count);

/* Computes each group's value for the next step from its sum. */
void apportion_step(struct apportion *apportion);

#endif

/*
 * apportion: whole numbers for the values of several groups in each step.
 *
 * Values are sums with SPREAD_UNIT_BITS fraction bits. The whole numbers of a step add up to those
 * that all groups together would have: the running sum of all, rounded, less what was given before.
 * Each group gets what brings its own numbers nearest to its running sum; then units are added for
 * the groups that lack most, or taken from those that lack least, until the sum is right. A group
 * that got too little in one step is first in the next. So each total is right to about one, and no
 * number has another sign than its value.
 *
 * Example: groups A and B have 0.5 in each of two steps. All together 1 is due in each. In the
 * first both round to 1; B's is taken. In the second A's running sum is 1, which it has, and B gets
 * the 1.
 *
 * What no group can take is given in a later step. Threads: an object belongs to one. Private to
 * store/.
 */
#ifndef STORE_QUERY_APPORTION_H
#define STORE_QUERY_APPORTION_H

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

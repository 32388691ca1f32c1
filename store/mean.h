/*
 * mean: a sum of fractions that is rounded once.
 *
 * Exact while the fractions' common denominator fits, which it does for any numbers of snapshots
 * that occur together. Private to the room.
 */
#ifndef STORE_MEAN_H
#define STORE_MEAN_H

#include <stdint.h>

/* Zeros with denominator 1 are 0. */
struct mean {
    __int128 whole;
    __int128 numerator;
    __int128 denominator;
};

static inline struct mean mean_zero(void)
{
    return (struct mean){.denominator = 1};
}

/* Adds sum / divisor; divisor is at least 1. */
void mean_add(struct mean *mean, __int128 sum, uint64_t divisor);
/* Halves away from 0. */
int64_t mean_round(const struct mean *mean);
__int128 mean_round_wide(const struct mean *mean);

#endif

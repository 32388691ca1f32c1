#include "store/mean.h"

static __int128 common_divisor(__int128 a, __int128 b)
{
    a = a < 0 ? -a : a;
    while (b) {
        const __int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void mean_add(struct mean *mean, __int128 sum, uint64_t divisor)
{
    const __int128 b = (__int128)divisor;
    mean->whole += sum / b;
    if (sum % b == 0)
        return;
    /* a/b + c/d; both below 1, and reduced so that the next step fits. */
    const __int128 numerator = mean->numerator * b + sum % b * mean->denominator;
    const __int128 denominator = mean->denominator * b;
    const __int128 common = common_divisor(numerator, denominator);
    mean->denominator = denominator / common;
    mean->whole += numerator / common / mean->denominator;
    mean->numerator = numerator / common % mean->denominator;
    if (mean->denominator > (__int128)1 << 62) { /* too fine to be kept exactly */
        mean->numerator >>= 32;
        mean->denominator >>= 32;
    }
}

__int128 mean_round_wide(const struct mean *mean)
{
    /* Both parts may have different signs. */
    const __int128 denominator = mean->denominator;
    __int128 doubled = 2 * (mean->whole * denominator + mean->numerator);
    doubled += doubled < 0 ? -denominator : denominator;
    return doubled / (2 * denominator);
}

int64_t mean_round(const struct mean *mean)
{
    return (int64_t)mean_round_wide(mean);
}

/*
 * fair_quota: limits the entries that one owner may take of a table that all processes of the host
 * share, so that one owner cannot fill it.
 *
 * While less than half of the table is used, an owner takes what it needs. From then on the entries
 * that an owner takes are counted, and the owner may hold at most 1/8 of those that are left. A
 * single request for more than one entry may never exceed 1/8 of what is left.
 *
 * If several owners in a row take all entries that they may, the k-th one finds at least
 * (7/8)^(k-1) of half the table free. Example for a table of 8,192 entries, 4,096 of which are
 * used: one owner may take 512 more in a single request; 3,584 are free then, of which the next
 * owner may take 448. One by one, the first owner gets only 455, because each entry that it takes
 * reduces what is left.
 *
 * An owner is a user, or a single process where the user is root (process_file_owner). The
 * functions are pure. Threads: any.
 */
#ifndef AGENT_PROCESS_FAIR_QUOTA_H
#define AGENT_PROCESS_FAIR_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

enum { FAIR_QUOTA_DIVISOR = 8 };

/* Whether entries that an owner takes are counted from now on. */
static inline bool fair_quota_is_counted(uint32_t used, uint32_t limit)
{
    return used >= limit / 2;
}

/* Whether an owner may take `wanted` entries; held: the counted entries that it has. */
static inline bool fair_quota_allows(uint32_t used, uint32_t limit, uint32_t held, uint32_t wanted)
{
    const uint32_t left = limit - used;
    if (wanted > left || (wanted > 1 && wanted > left / FAIR_QUOTA_DIVISOR))
        return false;
    return !fair_quota_is_counted(used, limit) || held + wanted <= left / FAIR_QUOTA_DIVISOR;
}

#endif

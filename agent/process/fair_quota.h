/*
 * fair_share: who may take how much of what all processes of the host share, so that one of them
 * leaves room for the others.
 *
 * While less than half is taken everybody takes what he needs. Of what is left then each owner has
 * at most an eighth, and so has each single taking at any time. An owner is a user, or of root's
 * processes each (process_file_owner). Pure functions. Threads: any.
 */
#ifndef AGENT_PROCESS_FAIR_QUOTA_H
#define AGENT_PROCESS_FAIR_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

enum { FAIR_SHARE = 8 };

/* Is it asked who takes, and counted what he holds? */
static inline bool fair_quota_is_counted(uint32_t used, uint32_t limit)
{
    return used >= limit / 2;
}

/* held: what the owner took since it is counted. */
static inline bool fair_quota_allows(uint32_t used, uint32_t limit, uint32_t held, uint32_t wanted)
{
    const uint32_t left = limit - used;
    if (wanted > left || (wanted > 1 && wanted > left / FAIR_SHARE))
        return false;
    return !fair_quota_is_counted(used, limit) || held + wanted <= left / FAIR_SHARE;
}

#endif

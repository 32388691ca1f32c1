/*
 * window_quota: limits how much each owner (process_owner) adds to a window, in bytes of the batch
 * that the window becomes, so that the batch stays small enough to be sent and has space for what
 * other owners add.
 *
 * An owner may use half of what the others have left of WINDOW_QUOTA_MAX_BYTES. If owners one after
 * the other take all that they may, the first gets 3 MiB, the second 1.5 MiB, the third 0.75 MiB,
 * and so on: later owners get less, but no owner is left without anything. Bytes that are in the
 * window already cost nothing, so callers count only what is new.
 *
 * All zeros is empty and ready for use. Threads: one.
 */
#ifndef AGENT_PROFILE_WINDOW_QUOTA_H
#define AGENT_PROFILE_WINDOW_QUOTA_H

#include "lib/base/map.h"

enum { WINDOW_QUOTA_MAX_BYTES = 6 << 20 };

struct window_quota_account;

struct window_quota {
    struct map_u64 numbers; /* of accounts, by owner */
    struct window_quota_account *accounts;
    uint32_t count;
    uint32_t capacity;
    uint64_t used_bytes;
};

void window_quota_fini(struct window_quota *quota);

/* Takes bytes of the owner's quota. False: they exceed it, and nothing is taken; *ret_is_first is
 * set only then: whether it is the owner's first refusal. */
bool window_quota_take(struct window_quota *quota, uint64_t owner, size_t bytes,
                       bool *ret_is_first);
/* Counts bytes that were added without a check; the owner may exceed its quota by them. */
void window_quota_charge(struct window_quota *quota, uint64_t owner, size_t bytes);
/* Whether the owner may add one byte more. */
bool window_quota_has_space(struct window_quota *quota, uint64_t owner);
/* Whether three quarters are used, so that little is left for owners that follow. */
bool window_quota_is_full(const struct window_quota *quota);

#endif

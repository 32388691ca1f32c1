/*
 * window_text: how much each owner (process_owner) may bring to a window, in bytes of the batch
 * that it becomes, so that the batch is one that can be sent and has what others do, too: names and
 * paths, and the entries of tables that processes choose by where they run.
 *
 * An owner has at most half of what others left. Only what is new is asked for: what is there
 * already costs nobody. All zeros is empty and ready for use. Threads: one.
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

void window_quota_fini(struct window_quota *text);

/* False: there is no room for so much more of this owner; *ret_is_first: for the first time. */
bool window_quota_take(struct window_quota *text, uint64_t owner, size_t bytes, bool *ret_is_first);
/* So much has come already. */
void window_quota_charge(struct window_quota *text, uint64_t owner, size_t bytes);
/* Is there room for anything more of this owner? */
bool window_quota_has_room(struct window_quota *text, uint64_t owner);
/* Little room is left for those that come. */
bool window_quota_is_full(const struct window_quota *text);

#endif

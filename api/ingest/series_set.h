/*
 * series_set: which series of a tenant had a profile recently, by their hashes.
 *
 * Open addressing, 16 bytes a slot and at most two slots a series. A series without a profile for
 * longer than the set's time counts until room is needed, which is looked for at most once in
 * SERIES_SET_PURGE_S.
 *
 * A new series is pending until it is known to be stored, and several requests may add it at once:
 * it is removed only if none of them has stored it. Threads: one at a time.
 */
#ifndef API_INGEST_SERIES_SET_H
#define API_INGEST_SERIES_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { SERIES_SET_PURGE_S = 10 };

struct series_slot {
    uint64_t hash;
    int32_t seen_s; /* 0: the slot is free; -1: the entry does not count */
    uint32_t is_stored : 1;
    uint32_t pending : 31; /* requests that have seen it while it was not stored, and have not
                              settled yet */
};

struct series_set {
    struct series_slot *slots;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t used;     /* slots that are not free */
    uint32_t count;    /* entries that count */
    int64_t purged_s;
};

void series_set_fini(struct series_set *set);
/* Whether the series is in the set, or can be added. now_s > 0; series last seen before
 * kept_since_s may be dropped. *ret_is_pending: it is not known to be stored, and the caller must
 * settle it once for each call. False: the set has `most` series already. */
bool series_set_see(struct series_set *set, uint64_t hash, int64_t now_s, int64_t kept_since_s,
                    uint32_t most, bool *ret_is_pending);
/* Records whether the series was stored. If no request has stored it, the last one removes it. */
void series_set_settle(struct series_set *set, uint64_t hash, bool is_stored);

#endif

/*
 * series_set: the series of a tenant that had a profile recently, by their hashes.
 *
 * A hash table with open addressing, of 16 bytes a slot; at least half of the slots are free. A
 * series whose last profile is too old (kept_since_s) still counts until the table is rebuilt: when
 * half of the slots are in use, or when the set is full, then at most once in SERIES_SET_PURGE_S.
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
/* Finds the series or adds it. Returns false if it is new and the set has `most` series already.
 * now_s > 0; series last seen before kept_since_s may be dropped. *ret_is_pending is true if the
 * series is not known to be stored; the caller must then call series_set_settle, once for each call
 * of this function. */
bool series_set_see(struct series_set *set, uint64_t hash, int64_t now_s, int64_t kept_since_s,
                    uint32_t most, bool *ret_is_pending);
/* Records whether the series was stored. If no request has stored it, the last one removes it. */
void series_set_settle(struct series_set *set, uint64_t hash, bool is_stored);

#endif

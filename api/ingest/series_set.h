/*
 * series_set: which series of a tenant had a profile lately, by their hashes.
 *
 * Open addressing, 16 bytes a slot and at most two slots a series. A series that had none for
 * longer than the set's time counts until room is needed, which is looked for at most once in
 * SERIES_SET_PURGE_S.
 *
 * A series that is new is not known to be stored yet, and several requests may have it at a time:
 * it is taken back only when none of them has stored it. Threads: one at a time.
 */
#ifndef API_INGEST_SERIES_SET_H
#define API_INGEST_SERIES_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { SERIES_SET_PURGE_S = 10 };

struct series_slot {
    uint64_t hash;
    int32_t seen_s; /* 0: the slot is free; -1: what was here does not count */
    uint32_t is_stored : 1;
    uint32_t pending : 31; /* who has seen it while it was not stored, and has not settled yet */
};

struct series_set {
    struct series_slot *slots;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t used;     /* slots that are not free */
    uint32_t count;    /* that count */
    int64_t purged_s;
};

void series_set_fini(struct series_set *set);
/* Is it there, or can it be added? now_s > 0; what was seen before kept_since_s may be dropped.
 * *ret_is_pending: it is not known to be stored, and the caller must settle it, once for each time.
 * False: the set has most already. */
bool series_set_see(struct series_set *set, uint64_t hash, int64_t now_s, int64_t kept_since_s,
                    uint32_t most, bool *ret_is_pending);
/* What became of it. When nobody has stored it, the last takes it back. */
void series_set_settle(struct series_set *set, uint64_t hash, bool is_stored);

#endif

#include "api/ingest/series_set.h"

#include "lib/base/mem.h"

enum { CAPACITY_LEAST = 64, GONE = -1 };

void series_set_fini(struct series_set *set)
{
    mem_free(set->slots);
    *set = (struct series_set){0};
}

/* The slot of hash, or the free one where it would be inserted. Hashes are random already. */
static struct series_slot *find_slot(const struct series_set *set, uint64_t hash)
{
    const uint32_t mask = set->capacity - 1;
    uint32_t at = (uint32_t)hash & mask;
    while (set->slots[at].seen_s && set->slots[at].hash != hash)
        at = (at + 1) & mask;
    return &set->slots[at];
}

/* Rebuilds the table with the given capacity, with the series seen since kept_since_s. */
static void rebuild_set(struct series_set *set, uint32_t capacity, int64_t kept_since_s)
{
    struct series_slot *old = set->slots;
    const uint32_t old_capacity = set->capacity;
    set->slots = mem_new(struct series_slot, capacity);
    set->capacity = capacity;
    set->used = set->count = 0;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].seen_s <= 0 || old[i].seen_s < kept_since_s)
            continue;
        *find_slot(set, old[i].hash) = old[i];
        set->used++;
        set->count++;
    }
    mem_free(old);
}

static void reserve_slot(struct series_set *set, int64_t now_s, int64_t kept_since_s, uint32_t most)
{
    if (set->count >= most && now_s - set->purged_s >= SERIES_SET_PURGE_S) {
        set->purged_s = now_s;
        if (set->capacity)
            rebuild_set(set, set->capacity, kept_since_s);
    }
    if (set->used < set->capacity / 2)
        return;
    /* Entries that do not count may have filled it. */
    const bool is_filled = set->count >= set->capacity / 4;
    rebuild_set(set,
                !set->capacity ? CAPACITY_LEAST
                : is_filled    ? set->capacity * 2
                               : set->capacity,
                kept_since_s);
}

bool series_set_see(struct series_set *set, uint64_t hash, int64_t now_s, int64_t kept_since_s,
                    uint32_t most, bool *ret_is_pending)
{
    struct series_slot *slot = set->capacity ? find_slot(set, hash) : NULL;
    *ret_is_pending = false;
    if (slot && slot->seen_s > 0) {
        slot->seen_s = (int32_t)now_s;
        *ret_is_pending = !slot->is_stored;
        if (*ret_is_pending)
            slot->pending++;
        return true;
    }
    reserve_slot(set, now_s, kept_since_s, most);
    if (set->count >= most)
        return false;
    slot = find_slot(set, hash);
    set->used += slot->seen_s == 0;
    set->count++;
    *slot = (struct series_slot){.hash = hash, .seen_s = (int32_t)now_s, .pending = 1};
    *ret_is_pending = true;
    return true;
}

void series_set_settle(struct series_set *set, uint64_t hash, bool is_stored)
{
    struct series_slot *slot = set->capacity ? find_slot(set, hash) : NULL;
    if (!slot || slot->seen_s <= 0) /* dropped because it was seen long ago */
        return;
    slot->is_stored |= is_stored;
    if (slot->pending)
        slot->pending--;
    if (slot->is_stored || slot->pending)
        return;
    slot->seen_s = GONE;
    set->count--;
}

/*
 * moments: how many snapshots a series has: what begins at one moment is one, however many profiles
 * brought it and whatever blocks they are in.
 *
 * A granule whose profiles begin apart (BLOCK_BEGIN_APART), in a time that no other granule of its
 * series in the question has a part of, has as many snapshots as profiles. That is nearly all of
 * them; of the others the profiles are read. Private to the room.
 */
#ifndef STORE_MOMENTS_H
#define STORE_MOMENTS_H

#include "store/walk.h"

/* Begins of profiles of one series; zeros are ready. */
struct moments {
    int64_t *times_ns;
    uint64_t count;
    uint64_t capacity;
};

void moments_fini(struct moments *moments);

/* Finds out of each task whether its profiles may begin with others of the series
 * (has_shared_moments). Returns the places of the tasks by series, in the walk's arena. */
const uint32_t *moments_find_shared(struct walk *walk);

/* Adds the begins of profiles first <= ordinal < end of a granule. */
void moments_add(struct moments *moments, const struct block_profile *profiles, uint32_t first,
                 uint32_t end);

size_t moments_memory(const struct moments *moments);

/* Tells each moment once, then forgets all. */
void moments_tell(struct moments *moments, void (*tell)(void *context, int64_t time_ns),
                  void *context);

#endif

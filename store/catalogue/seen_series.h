/*
 * seen_series: series that this server has counted for a day, so that it asks the database about
 * each once only.
 *
 * Forgotten when the day is over, or when there are SEEN_SERIES_MAX: then they are asked about
 * again, which costs time and changes nothing. Threads: one. Private to the room.
 */
#ifndef STORE_CATALOGUE_SEEN_SERIES_H
#define STORE_CATALOGUE_SEEN_SERIES_H

#include "lib/base/map.h"

enum { SEEN_SERIES_MAX = 4000000 };

/* All zeros is empty. */
struct seen_series {
    struct map_u64 known;
    int32_t day;
};

void seen_series_fini(struct seen_series *seen);
/* What is asked and added from now on is of that day. */
void seen_series_begin(struct seen_series *seen, int32_t day);
bool seen_series_has(const struct seen_series *seen, int64_t tenant_id, uint64_t hash);
void seen_series_add(struct seen_series *seen, int64_t tenant_id, uint64_t hash);

#endif

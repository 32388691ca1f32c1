/*
 * seen_series: the series that this server has counted today, so that it queries the database once
 * for each.
 *
 * The set is cleared when the day is over or when it has SEEN_SERIES_MAX members; a series is then
 * queried again, which costs time and changes no result. Threads: one. Private to store/.
 */
#ifndef STORE_CATALOGUE_SEEN_SERIES_H
#define STORE_CATALOGUE_SEEN_SERIES_H

#include "lib/base/map.h"

enum { SEEN_SERIES_MAX = 4000000 };

/* All zeros: empty. */
struct seen_series {
    struct map_u64 known;
    int32_t day;
};

void seen_series_fini(struct seen_series *seen);
/* Starts a day: the calls that follow are about this day. */
void seen_series_begin(struct seen_series *seen, int32_t day);
bool seen_series_has(const struct seen_series *seen, int64_t tenant_id, uint64_t hash);
void seen_series_add(struct seen_series *seen, int64_t tenant_id, uint64_t hash);

#endif

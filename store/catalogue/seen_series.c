#include "store/catalogue/seen_series.h"

void seen_series_fini(struct seen_series *seen)
{
    map_u64_fini(&seen->known);
    *seen = (struct seen_series){0};
}

void seen_series_begin(struct seen_series *seen, int32_t day)
{
    if (seen->day != day || seen->known.count >= SEEN_SERIES_MAX)
        seen_series_fini(seen);
    seen->day = day;
}

/* Hashes are random, so mixing in the tenant keeps keys of two tenants apart. */
static uint64_t key_of(int64_t tenant_id, uint64_t hash)
{
    return hash ^ (uint64_t)tenant_id * UINT64_C(0x9E3779B97F4A7C15);
}

bool seen_series_has(const struct seen_series *seen, int64_t tenant_id, uint64_t hash)
{
    return map_u64_find(&seen->known, key_of(tenant_id, hash)) != MAP_ABSENT;
}

void seen_series_add(struct seen_series *seen, int64_t tenant_id, uint64_t hash)
{
    map_u64_add(&seen->known, key_of(tenant_id, hash), 0);
}

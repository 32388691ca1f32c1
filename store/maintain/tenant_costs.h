/*
 * tenant_costs: the recent duration of the merges of each tenant.
 *
 * One thread merges for all tenants. A tenant whose merges took TENANT_COSTS_LIMIT_NS within about
 * the last minute is costly: the others' work comes first (catalogue_claim). A cost is halved every
 * TENANT_COSTS_HALF_NS. Only the TENANT_COSTS_COUNT tenants with the highest costs are
 * remembered. All zeros
 * are an empty object. Threads: one.
 */
#ifndef STORE_MAINTAIN_TENANT_COSTS_H
#define STORE_MAINTAIN_TENANT_COSTS_H

#include <stdint.h>

enum { TENANT_COSTS_COUNT = 16 };
#define TENANT_COSTS_LIMIT_NS INT64_C(3000000000)
#define TENANT_COSTS_HALF_NS INT64_C(30000000000)

struct tenant_cost {
    int64_t tenant_id;
    int64_t cost_ns;
    int64_t noted_ns; /* time at which cost_ns was computed */
};

struct tenant_costs {
    struct tenant_cost list[TENANT_COSTS_COUNT];
    uint32_t count;
};

/* now_ns: monotonic clock, never earlier than in the call before. */
void tenant_costs_add(struct tenant_costs *costs, int64_t tenant_id, int64_t duration_ns,
                      int64_t now_ns);

/* Writes the ids of costly tenants; returns how many there are. */
uint32_t tenant_costs_list(const struct tenant_costs *costs, int64_t now_ns,
                           int64_t ret_ids[TENANT_COSTS_COUNT]);

#endif

#include "store/maintain/tenant_costs.h"

enum { SHIFT_MAX = 62 };

/* Between two halvings the cost falls in a straight line. */
static int64_t cost_at(const struct tenant_cost *cost, int64_t now_ns)
{
    const int64_t age_ns = now_ns - cost->noted_ns;
    const int64_t halvings = age_ns / TENANT_COSTS_HALF_NS;
    if (halvings > SHIFT_MAX)
        return 0;
    const int64_t left_ns = cost->cost_ns >> halvings;
    const double part = (double)(age_ns % TENANT_COSTS_HALF_NS) / (double)TENANT_COSTS_HALF_NS;
    return left_ns - (int64_t)((double)left_ns / 2 * part);
}

/* Returns the tenant's slot, a free one, or that of the tenant with the lowest cost. */
static struct tenant_cost *find_slot(struct tenant_costs *costs, int64_t tenant_id, int64_t now_ns)
{
    struct tenant_cost *lowest = &costs->list[0];
    for (uint32_t i = 0; i < costs->count; i++) {
        if (costs->list[i].tenant_id == tenant_id)
            return &costs->list[i];
        if (cost_at(&costs->list[i], now_ns) < cost_at(lowest, now_ns))
            lowest = &costs->list[i];
    }
    return costs->count < TENANT_COSTS_COUNT ? &costs->list[costs->count++] : lowest;
}

void tenant_costs_add(struct tenant_costs *costs, int64_t tenant_id, int64_t duration_ns,
                      int64_t now_ns)
{
    struct tenant_cost *slot = find_slot(costs, tenant_id, now_ns);
    const int64_t before_ns = slot->tenant_id == tenant_id ? cost_at(slot, now_ns) : 0;
    *slot = (struct tenant_cost){
        .tenant_id = tenant_id, .cost_ns = before_ns + duration_ns, .noted_ns = now_ns};
}

uint32_t tenant_costs_list(const struct tenant_costs *costs, int64_t now_ns,
                           int64_t ret_ids[TENANT_COSTS_COUNT])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < costs->count; i++) {
        if (cost_at(&costs->list[i], now_ns) >= TENANT_COSTS_LIMIT_NS)
            ret_ids[count++] = costs->list[i].tenant_id;
    }
    return count;
}

#include "agent/interpreter/code_budget.h"

#include "lib/base/arena.h"

void code_budget_init(struct code_budget *budget, uint64_t max_bytes)
{
    *budget = (struct code_budget){.max_bytes = max_bytes};
}

void code_budget_fini(struct code_budget *budget)
{
    owner_usage_fini(&budget->held);
    arena_destroy(budget->shared);
    budget->shared = NULL;
}

struct arena *code_budget_shared(struct code_budget *budget)
{
    arena_destroy(budget->shared);
    return budget->shared = arena_create();
}

void code_quota_set(struct code_quota *quota, uint64_t bytes)
{
    struct code_budget *budget = quota->budget;
    const uint32_t now = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    budget->used_bytes += now;
    budget->used_bytes -= quota->bytes;
    owner_usage_take(&budget->held, quota->owner, quota->bytes);
    owner_usage_add(&budget->held, quota->owner, now);
    quota->bytes = now;
}

/* bytes - taken; 0 if that is negative. */
static uint64_t remaining(uint64_t bytes, uint64_t taken)
{
    return bytes > taken ? bytes - taken : 0;
}

bool code_quota_allows(const struct code_quota *quota, uint64_t bytes)
{
    const struct code_budget *budget = quota->budget;
    const uint64_t others = budget->used_bytes - quota->bytes;
    const uint64_t held = owner_usage_get(&budget->held, quota->owner) - quota->bytes;
    return bytes <= remaining(budget->max_bytes, others) / 2 &&
           bytes <= remaining(remaining(budget->max_bytes, others - held) / 4 * 3, held);
}

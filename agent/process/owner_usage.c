#include "agent/process/owner_usage.h"

#include "lib/base/mem.h"

#include <assert.h>

void owner_usage_fini(struct owner_usage *sums)
{
    mem_free(sums->list);
    *sums = (struct owner_usage){0};
}

/* NULL: it holds nothing. */
static struct owner_usage_entry *find(const struct owner_usage *sums, uint64_t owner)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        if (sums->list[i].owner == owner)
            return &sums->list[i];
    }
    return NULL;
}

uint32_t owner_usage_get(const struct owner_usage *sums, uint64_t owner)
{
    const struct owner_usage_entry *sum = find(sums, owner);
    return sum ? sum->held : 0;
}

void owner_usage_add(struct owner_usage *sums, uint64_t owner, uint32_t amount)
{
    if (!owner || !amount)
        return;
    struct owner_usage_entry *sum = find(sums, owner);
    if (!sum && sums->count == sums->capacity) {
        sums->capacity = sums->capacity ? sums->capacity * 2 : 16;
        sums->list = mem_resize(sums->list, sums->capacity, sizeof *sums->list);
    }
    if (!sum) {
        sum = &sums->list[sums->count++];
        *sum = (struct owner_usage_entry){.owner = owner};
    }
    sum->held += amount;
}

void owner_usage_take(struct owner_usage *sums, uint64_t owner, uint32_t amount)
{
    if (!owner || !amount)
        return;
    struct owner_usage_entry *sum = find(sums, owner);
    assert(sum && sum->held >= amount);
    sum->held -= amount;
    if (!sum->held)
        *sum = sums->list[--sums->count];
}

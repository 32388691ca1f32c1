#include "agent/process/owner_usage.h"

#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <assert.h>

void owner_usage_fini(struct owner_usage *usage)
{
    mem_free(usage->list);
    *usage = (struct owner_usage){0};
}

/* NULL: the owner holds nothing. */
static struct owner_usage_entry *find_entry(const struct owner_usage *usage, uint64_t owner)
{
    for (uint32_t i = 0; i < usage->count; i++) {
        if (usage->list[i].owner == owner)
            return &usage->list[i];
    }
    return NULL;
}

uint32_t owner_usage_get(const struct owner_usage *usage, uint64_t owner)
{
    const struct owner_usage_entry *entry = find_entry(usage, owner);
    return entry ? entry->held : 0;
}

void owner_usage_add(struct owner_usage *usage, uint64_t owner, uint32_t amount)
{
    if (!owner || !amount)
        return;
    struct owner_usage_entry *entry = find_entry(usage, owner);
    if (!entry) {
        vec_reserve(usage->list, usage->capacity, usage->count + 1);
        entry = &usage->list[usage->count++];
        *entry = (struct owner_usage_entry){.owner = owner};
    }
    entry->held += amount;
}

void owner_usage_take(struct owner_usage *usage, uint64_t owner, uint32_t amount)
{
    if (!owner || !amount)
        return;
    struct owner_usage_entry *entry = find_entry(usage, owner);
    assert(entry && entry->held >= amount);
    entry->held -= amount;
    if (!entry->held)
        *entry = usage->list[--usage->count];
}

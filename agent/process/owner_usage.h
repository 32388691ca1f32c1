/*
 * owner_usage: how much of a resource each owner (fair_quota.h) holds.
 *
 * A list of the owners that hold anything, searched linearly, because they are few. Owner 0 means
 * "not counted" and holds nothing. Threads: one.
 */
#ifndef AGENT_PROCESS_OWNER_USAGE_H
#define AGENT_PROCESS_OWNER_USAGE_H

#include <stdint.h>

struct owner_usage_entry {
    uint64_t owner;
    uint32_t held; /* never 0 */
};

/* All zeros: an empty list. */
struct owner_usage {
    struct owner_usage_entry *list;
    uint32_t count;
    uint32_t capacity;
};

void owner_usage_fini(struct owner_usage *usage);

uint32_t owner_usage_get(const struct owner_usage *usage, uint64_t owner);
void owner_usage_add(struct owner_usage *usage, uint64_t owner, uint32_t amount);
/* Subtracts amount, which the owner holds. */
void owner_usage_take(struct owner_usage *usage, uint64_t owner, uint32_t amount);

#endif

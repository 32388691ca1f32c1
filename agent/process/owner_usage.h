/*
 * owner_sums: how much each owner (fair_share.h) holds of something, for those who hold any of it.
 *
 * A look-up goes through all of them: owners that hold what is counted are few. Owner 0 is nobody,
 * and holds nothing. Threads: one.
 */
#ifndef AGENT_PROCESS_OWNER_USAGE_H
#define AGENT_PROCESS_OWNER_USAGE_H

#include <stdint.h>

struct owner_usage_entry {
    uint64_t owner;
    uint32_t held; /* never 0 */
};

/* Zeros: nobody holds anything. */
struct owner_usage {
    struct owner_usage_entry *list;
    uint32_t count;
    uint32_t capacity;
};

void owner_usage_fini(struct owner_usage *sums);

uint32_t owner_usage_get(const struct owner_usage *sums, uint64_t owner);
void owner_usage_add(struct owner_usage *sums, uint64_t owner, uint32_t amount);
/* Of what it holds. */
void owner_usage_take(struct owner_usage *sums, uint64_t owner, uint32_t amount);

#endif

/*
 * owner_sums: how much each owner (fair_share.h) holds of something, for those who hold any of it.
 *
 * A look-up goes through all of them: owners that hold what is counted are few. Owner 0 is nobody,
 * and holds nothing. Threads: one.
 */
#ifndef AGENT_PROCESS_OWNER_USAGE_H
#define AGENT_PROCESS_OWNER_USAGE_H

#include <stdint.h>

struct owner_sum {
    uint64_t owner;
    uint32_t held; /* never 0 */
};

/* Zeros: nobody holds anything. */
struct owner_sums {
    struct owner_sum *list;
    uint32_t count;
    uint32_t capacity;
};

void owner_sums_fini(struct owner_sums *sums);

uint32_t owner_sums_get(const struct owner_sums *sums, uint64_t owner);
void owner_sums_add(struct owner_sums *sums, uint64_t owner, uint32_t amount);
/* Of what it holds. */
void owner_sums_take(struct owner_sums *sums, uint64_t owner, uint32_t amount);

#endif

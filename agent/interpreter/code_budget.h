/*
 * code_budget: limits the memory of known script functions (cpython_code.h, ruby_code.h) for all
 * processes together.
 *
 * The quotas are those of JIT names (jit_symbols.h): one process may use half of what all other
 * processes leave, the processes of one owner (process_owner) together three quarters of what the
 * other owners leave. A function for which the quota has no space is read on each use, into memory
 * that all processes share. Threads: one.
 */
#ifndef AGENT_INTERPRETER_CODE_BUDGET_H
#define AGENT_INTERPRETER_CODE_BUDGET_H

#include "agent/process/owner_usage.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;

struct code_budget {
    uint64_t max_bytes;
    uint64_t used_bytes;
    struct owner_usage held;
    struct arena *shared; /* for a function without space; NULL: it was not needed yet */
};

/* How much of the budget one process and its children use. Do not copy the struct while bytes > 0:
 * each copy would return the same bytes. */
struct code_quota {
    struct code_budget *budget; /* outlives the quota */
    uint64_t owner;
    uint32_t bytes; /* in use; code_quota_set changes it */
};

void code_budget_init(struct code_budget *budget, uint64_t max_bytes);
void code_budget_fini(struct code_budget *budget);
/* An empty arena for a function without space; valid until the next call. */
struct arena *code_budget_shared(struct code_budget *budget);

/* Sets the number of bytes in use. It must be set to 0 before the quota is freed. */
void code_quota_set(struct code_quota *quota, uint64_t bytes);
/* Whether the bytes in use may grow to this number. */
bool code_quota_allows(const struct code_quota *quota, uint64_t bytes);

#endif

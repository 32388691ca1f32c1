/*
 * code_budget: limits the memory of known script functions (cpython_code.h, ruby_code.h) for all
 * processes together.
 *
 * The quotas are those of JIT names (jit_symbols.h): one process may use half of what is left, the
 * processes of one owner (process_owner) three quarters of what the others leave. A function
 * without room is read on each use, into memory that all processes share. Threads: one.
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
    struct arena *shared; /* NULL: it was not needed yet */
};

/* Of one process and its children; not to be moved while it has something. */
struct code_share {
    struct code_budget *budget; /* outlives it */
    uint64_t owner;
    uint32_t bytes;
};

void code_budget_init(struct code_budget *budget, uint64_t max_bytes);
void code_budget_fini(struct code_budget *budget);
/* Empty; what is in it stays until the next call. */
struct arena *code_budget_shared(struct code_budget *budget);

/* It has so much now; 0 before its end. */
void code_share_set(struct code_share *share, uint64_t bytes);
/* May it have so much, with what it has? */
bool code_share_allows(const struct code_share *share, uint64_t bytes);

#endif

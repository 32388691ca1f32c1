/*
 * cfi_rules: numbers rules, the same rule always the same. Begins with the fixed ones.
 */
#ifndef AGENT_CFI_RULES_H
#define AGENT_CFI_RULES_H

#include "agent/cfi_program.h"

struct cfi_rules {
    struct cfi_rule *list;
    uint32_t count;
    uint32_t limit; /* at most so many */
    uint32_t capacity;
    uint32_t *slots; /* number + 1, or 0; open addressing */
    uint32_t slot_count;
};

void cfi_rules_init(struct cfi_rules *rules, uint32_t limit);
void cfi_rules_fini(struct cfi_rules *rules);

/* The rule's number; UNWIND_RULE_FULL when it is new and there is no room. */
uint32_t cfi_rules_add(struct cfi_rules *rules, const struct cfi_rule *rule);

#endif

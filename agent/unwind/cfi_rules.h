/*
 * cfi_rules: gives each different rule a number, after the rules with fixed numbers.
 *
 * Any user can provide files. The hash of a rule has a random key, so that a file cannot contain
 * many rules with one hash. Threads: one.
 */
#ifndef AGENT_UNWIND_CFI_RULES_H
#define AGENT_UNWIND_CFI_RULES_H

#include "agent/unwind/cfi_state.h"

struct cfi_rule_key {
    uint64_t words[2];
};

/* Draws a random key. */
void cfi_rule_key_draw(struct cfi_rule_key *ret_key);
/* Hashes a rule by multiplying two words that contain the key. The hash is computed each time that
 * the rule changes within a table, so it must be cheap. */
static inline uint64_t cfi_rule_hash(const struct cfi_rule_key *key, const struct cfi_rule *rule)
{
    const unsigned __int128 product =
        (unsigned __int128)(rule->words[0] ^ key->words[0]) * (rule->words[1] ^ key->words[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

struct cfi_rules {
    struct cfi_rule_key key;
    struct cfi_rule *list;
    uint32_t count;
    uint32_t limit; /* the most rules */
    uint32_t capacity;
    uint32_t *slots; /* number + 1, or 0; open addressing */
    uint32_t slot_count;
};

void cfi_rules_init(struct cfi_rules *rules, uint32_t limit);
void cfi_rules_fini(struct cfi_rules *rules);

/* Returns the number of the rule; adds the rule if it is new. UNWIND_RULE_FULL: there is no space.
 */
uint32_t cfi_rules_add(struct cfi_rules *rules, const struct cfi_rule *rule);

#endif

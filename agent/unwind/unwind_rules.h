/*
 * unwind_rules: the rules that the unwinder reads. Each is stored once, with the number of tables
 * that use it.
 *
 * When the last use of a rule is released, its records are reused. By then the caller has waited
 * until no unwinder reads them (unwind_maps.h). The memos of the unwinder contain rules rather than
 * numbers of records, so a reused record cannot mislead it.
 *
 * Limits: a table may add rules for an eighth of the free records. Once half of the records are
 * used, an eighth of the free ones is also the limit for all that one owner (fair_quota.h) adds
 * from then on, so that the files of one user leave space for others. On a Debian system no file
 * has more than 585 rules, and all files together have 5,270. A rule counts for the owner who first
 * added it, as long as any table uses it. Threads: one.
 */
#ifndef AGENT_UNWIND_UNWIND_RULES_H
#define AGENT_UNWIND_UNWIND_RULES_H

#include "agent/unwind/cfi_state.h"

struct unwind_rules;

/* records: UNWIND_RULE_COUNT + 1 of them, all bytes 0 at the start; borrowed, outlive the rules. */
struct unwind_rules *unwind_rules_create(struct unwind_rule *records);
void unwind_rules_destroy(struct unwind_rules *rules);

/* The number of records that a table may add. */
struct unwind_rules_quota {
    uint64_t owner; /* the owner who is charged for its new rules; 0: none */
    uint32_t left;  /* number of records */
};

/* Returns how many records a table of this owner (0: none) may add now. */
struct unwind_rules_quota unwind_rules_quota(const struct unwind_rules *rules, uint64_t owner);
/* Returns the number of records that a table may add when none is used. */
uint32_t unwind_rules_largest_quota(void);

/* Adds a use of the rule and returns the number of its first record. A new rule takes its records
 * from quota->left. UNWIND_RULE_FULL: there are too few. */
uint16_t unwind_rules_take(struct unwind_rules *rules, const struct cfi_rule *rule,
                           struct unwind_rules_quota *quota);
/* Releases one use of the rule at each record; rules with a fixed number stay. */
void unwind_rules_give(struct unwind_rules *rules, const uint16_t *records, uint32_t count);

/* The number of new rules with two records that fit: the two must be adjacent. */
uint32_t unwind_rules_pairs(const struct unwind_rules *rules);

/* The number of records of all rules. */
uint32_t unwind_rules_used(const struct unwind_rules *rules);

#endif

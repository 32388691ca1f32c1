#include "agent/unwind/unwind_rules.h"

#include "agent/process/fair_quota.h"
#include "agent/process/owner_usage.h"
#include "agent/unwind/cfi_rules.h"
#include "agent/unwind/free_ranges.h"
#include "lib/base/mem.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct unwind_rule) == 8 && sizeof(struct unwind_rule_extra) == 8,
              "a rule and its extra are two records of the same array");

enum { BUCKET_BITS = 12 };

struct unwind_rules {
    struct unwind_rule *records;
    struct cfi_rule_key key;
    struct free_ranges free;
    struct owner_usage held;          /* records by owner */
    uint32_t uses[UNWIND_RULE_COUNT]; /* by record: number of tables that use the rule */
    uint64_t
        owners[UNWIND_RULE_COUNT]; /* by record: the owner who is charged for the rule; 0: none */
    uint16_t next[UNWIND_RULE_COUNT];    /* by record: the next rule of the bucket; 0: none */
    uint16_t buckets[1u << BUCKET_BITS]; /* record of the first rule; 0 (UNWIND_RULE_NONE): none */
};

static uint32_t record_count(const struct unwind_rule *rule)
{
    return cfi_rule_has_extra(rule) ? 2 : 1;
}

static struct cfi_rule rule_at(const struct unwind_rules *rules, uint16_t record)
{
    struct cfi_rule rule = {.rule = rules->records[record]};
    if (cfi_rule_has_extra(&rule.rule))
        memcpy(&rule.extra, &rules->records[record + 1], sizeof rule.extra);
    return rule;
}

static uint16_t *bucket_of(struct unwind_rules *rules, const struct cfi_rule *rule)
{
    return &rules->buckets[cfi_rule_hash(&rules->key, rule) >> (64 - BUCKET_BITS)];
}

/* The link of the bucket's list that refers to the rule; if the rule is not known, the last link,
 * which is 0. */
static uint16_t *find_link(struct unwind_rules *rules, const struct cfi_rule *rule)
{
    uint16_t *link = bucket_of(rules, rule);
    while (*link) {
        const struct cfi_rule known = rule_at(rules, *link);
        if (cfi_rule_equal(&known, rule))
            break;
        link = &rules->next[*link];
    }
    return link;
}

static uint16_t add_rule(struct unwind_rules *rules, const struct cfi_rule *rule, uint16_t *link)
{
    const int64_t record = free_ranges_take(&rules->free, record_count(&rule->rule));
    if (record == FREE_RANGES_NONE)
        return UNWIND_RULE_FULL;
    rules->records[record] = rule->rule;
    if (record_count(&rule->rule) == 2)
        memcpy(&rules->records[record + 1], &rule->extra, sizeof rule->extra);
    rules->next[record] = 0;
    return *link = (uint16_t)record;
}

struct unwind_rules *unwind_rules_create(struct unwind_rule *records)
{
    struct unwind_rules *rules = mem_new(struct unwind_rules, 1);
    const struct cfi_rule fixed[UNWIND_RULE_FIXED_COUNT] = {
        [UNWIND_RULE_ROOT] = cfi_rule_stop(UNWIND_STOP_ROOT),
        [UNWIND_RULE_FULL] = cfi_rule_stop(UNWIND_STOP_RULES_FULL)};
    rules->records = records;
    cfi_rule_key_draw(&rules->key);
    free_ranges_init(&rules->free, UNWIND_RULE_COUNT);
    for (uint32_t i = 0; i < UNWIND_RULE_FIXED_COUNT; i++)
        add_rule(rules, &fixed[i], find_link(rules, &fixed[i]));
    return rules;
}

void unwind_rules_destroy(struct unwind_rules *rules)
{
    if (!rules)
        return;
    free_ranges_fini(&rules->free);
    owner_usage_fini(&rules->held);
    mem_free(rules);
}

struct unwind_rules_quota unwind_rules_quota(const struct unwind_rules *rules, uint64_t owner)
{
    const uint32_t most = rules->free.free_size / FAIR_QUOTA_DIVISOR;
    if (!owner || !fair_quota_is_counted(unwind_rules_used(rules), UNWIND_RULE_COUNT))
        return (struct unwind_rules_quota){.left = most};
    const uint32_t held = owner_usage_get(&rules->held, owner);
    return (struct unwind_rules_quota){.owner = owner, .left = held < most ? most - held : 0};
}

uint32_t unwind_rules_largest_quota(void)
{
    return (UNWIND_RULE_COUNT - UNWIND_RULE_FIXED_COUNT) / FAIR_QUOTA_DIVISOR;
}

uint16_t unwind_rules_take(struct unwind_rules *rules, const struct cfi_rule *rule,
                           struct unwind_rules_quota *quota)
{
    if (rule->words[0] == 0)
        return UNWIND_RULE_NONE;
    uint16_t *link = find_link(rules, rule);
    if (!*link) {
        const uint32_t needed = record_count(&rule->rule);
        if (needed > quota->left || add_rule(rules, rule, link) == UNWIND_RULE_FULL)
            return UNWIND_RULE_FULL;
        rules->owners[*link] = quota->owner;
        owner_usage_add(&rules->held, quota->owner, needed);
        quota->left -= needed;
    }
    rules->uses[*link]++;
    return *link;
}

static void give_rule(struct unwind_rules *rules, uint16_t record)
{
    if (record < UNWIND_RULE_FIXED_COUNT)
        return;
    assert(rules->uses[record] > 0);
    if (--rules->uses[record] > 0)
        return;
    const struct cfi_rule rule = rule_at(rules, record);
    *find_link(rules, &rule) = rules->next[record];
    owner_usage_take(&rules->held, rules->owners[record], record_count(&rule.rule));
    rules->owners[record] = 0;
    free_ranges_give(&rules->free, record, record_count(&rule.rule));
}

void unwind_rules_give(struct unwind_rules *rules, const uint16_t *records, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        give_rule(rules, records[i]);
}

uint32_t unwind_rules_pairs(const struct unwind_rules *rules)
{
    uint32_t pairs = 0;
    for (size_t i = 0; i < rules->free.count; i++)
        pairs += rules->free.list[i].size / 2;
    return pairs;
}

uint32_t unwind_rules_used(const struct unwind_rules *rules)
{
    return UNWIND_RULE_COUNT - rules->free.free_size;
}

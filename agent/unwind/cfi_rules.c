#include "agent/unwind/cfi_rules.h"

#include "lib/base/digest.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

#include <assert.h>

static_assert(sizeof(struct cfi_rule) == 16, "compared as two words, without padding");

void cfi_rule_key_draw(struct cfi_rule_key *ret_key)
{
    digest_random(ret_key, sizeof *ret_key);
}

void cfi_rules_init(struct cfi_rules *rules, uint32_t limit)
{
    const struct cfi_rule none = {0};
    const struct cfi_rule root = cfi_rule_stop(UNWIND_STOP_ROOT);
    const struct cfi_rule full = cfi_rule_stop(UNWIND_STOP_RULES_FULL);
    *rules = (struct cfi_rules){.limit = limit, .capacity = 64, .slot_count = 256};
    cfi_rule_key_draw(&rules->key);
    rules->list = mem_new(struct cfi_rule, rules->capacity);
    rules->slots = mem_new(uint32_t, rules->slot_count);
    cfi_rules_add(rules, &none);
    cfi_rules_add(rules, &root);
    cfi_rules_add(rules, &full);
}

void cfi_rules_fini(struct cfi_rules *rules)
{
    mem_free(rules->list);
    mem_free(rules->slots);
    rules->list = NULL;
    rules->slots = NULL;
}

/* The slot of the rule, or the free slot to put it in. */
static uint32_t *find_slot(const struct cfi_rules *rules, const struct cfi_rule *rule)
{
    uint32_t mask = rules->slot_count - 1;
    for (uint32_t at = (uint32_t)cfi_rule_hash(&rules->key, rule) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &rules->slots[at];
        if (!*slot || cfi_rule_equal(&rules->list[*slot - 1], rule))
            return slot;
    }
}

static void grow_slots(struct cfi_rules *rules)
{
    mem_free(rules->slots);
    rules->slot_count *= 2;
    rules->slots = mem_new(uint32_t, rules->slot_count);
    for (uint32_t i = 0; i < rules->count; i++)
        *find_slot(rules, &rules->list[i]) = i + 1;
}

uint32_t cfi_rules_add(struct cfi_rules *rules, const struct cfi_rule *rule)
{
    uint32_t *slot = find_slot(rules, rule);
    if (*slot)
        return *slot - 1;
    if (rules->count == rules->limit)
        return UNWIND_RULE_FULL;
    vec_reserve(rules->list, rules->capacity, rules->count + 1);
    rules->list[rules->count++] = *rule;
    *slot = rules->count;
    if (rules->count * 2 > rules->slot_count)
        grow_slots(rules);
    return rules->count - 1;
}

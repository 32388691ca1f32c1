#include "store/retention.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "store/catalogue.h"
#include "store/selector.h"

struct one {
    struct selector *selector;
    int64_t keep_s;
};

struct retention {
    struct one *rules;
    uint32_t count;
    int64_t default_s;
    int64_t now_ns;
    int64_t latest_cutoff_ns;
};

int64_t retention_cutoff(const struct retention *retention, int64_t keep_s)
{
    int64_t cutoff_ns;
    if (!keep_s || __builtin_mul_overflow(keep_s, CLOCK_NS_PER_S, &cutoff_ns) ||
        __builtin_sub_overflow(retention->now_ns, cutoff_ns, &cutoff_ns))
        return INT64_MIN;
    return cutoff_ns;
}

static void note_cutoff(struct retention *retention, int64_t keep_s)
{
    const int64_t cutoff_ns = retention_cutoff(retention, keep_s);
    if (cutoff_ns > retention->latest_cutoff_ns)
        retention->latest_cutoff_ns = cutoff_ns;
}

enum err_code retention_create(struct arena *arena, const struct catalogue_rules *rules,
                               struct retention **ret_retention, struct err *err)
{
    struct retention *retention = arena_new(arena, struct retention, 1);
    *retention = (struct retention){.rules = arena_new(arena, struct one, rules->count),
                                    .count = rules->count,
                                    .default_s = rules->default_s,
                                    .now_ns = rules->now_ns,
                                    .latest_cutoff_ns = INT64_MIN};
    note_cutoff(retention, rules->default_s);
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct catalogue_rule *rule = &rules->rules[i];
        retention->rules[i].keep_s = rule->keep_s;
        note_cutoff(retention, rule->keep_s);
        enum err_code code =
            selector_parse(arena, span_text(rule->selector), &retention->rules[i].selector, err);
        if (code)
            return err_add(err, "rule %u of what is kept for how long", i + 1);
    }
    *ret_retention = retention;
    return ERR_NONE;
}

int64_t retention_latest_cutoff(const struct retention *retention)
{
    return retention->latest_cutoff_ns;
}

enum err_code retention_find(const struct retention *retention, const struct dictionary *dictionary,
                             uint32_t series, int64_t *ret_keep_s, struct err *err)
{
    for (uint32_t i = 0; i < retention->count; i++) {
        bool matches = false;
        enum err_code code =
            selector_matches(retention->rules[i].selector, dictionary, series, &matches, err);
        if (code)
            return code;
        if (matches) {
            *ret_keep_s = retention->rules[i].keep_s;
            return ERR_NONE;
        }
    }
    *ret_keep_s = retention->default_s;
    return ERR_NONE;
}

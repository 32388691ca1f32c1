#include "store/catalogue/retention.h"

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "store/block/selector.h"
#include "store/catalogue/catalogue.h"
#include "store/catalogue/match_budget.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)

struct retention_entry {
    struct selector *selector;
    struct retention_times times;
};

struct retention {
    struct retention_entry *rules;
    uint32_t count;
    struct retention_times others; /* for series that no rule matches */
    int64_t latest_cutoff_ns;
    struct match_budget *budget; /* NULL: none */
};

static int64_t cutoff_of(int64_t now_ns, int64_t keep_s)
{
    int64_t cutoff_ns;
    if (!keep_s || __builtin_mul_overflow(keep_s, CLOCK_NS_PER_S, &cutoff_ns) ||
        __builtin_sub_overflow(now_ns, cutoff_ns, &cutoff_ns))
        return INT64_MIN;
    return cutoff_ns;
}

/* Returns the start of the hour that contains time_ns: the end of the last hour that is over. */
static int64_t begin_of_hour(int64_t time_ns)
{
    const int64_t rest = time_ns % HOUR_NS;
    return time_ns < INT64_MIN + HOUR_NS ? INT64_MIN : time_ns - rest - (rest < 0 ? HOUR_NS : 0);
}

static struct retention_times times_of(int64_t now_ns, int64_t keep_s, int64_t totals_s)
{
    struct retention_times times = {.keep_s = keep_s,
                                    .totals_s = totals_s,
                                    .gone_before_ns = cutoff_of(now_ns, keep_s),
                                    .totals_before_ns = INT64_MIN};
    if (totals_s) {
        times.totals_before_ns = begin_of_hour(times.gone_before_ns);
        times.gone_before_ns = begin_of_hour(cutoff_of(now_ns, totals_s));
    }
    return times;
}

static void note_cutoff(struct retention *retention, const struct retention_times *times)
{
    if (times->gone_before_ns > retention->latest_cutoff_ns)
        retention->latest_cutoff_ns = times->gone_before_ns;
    if (times->totals_before_ns > retention->latest_cutoff_ns)
        retention->latest_cutoff_ns = times->totals_before_ns;
}

enum err_code retention_create(struct arena *arena, const struct catalogue_rules *rules,
                               struct retention **ret_retention, struct err *err)
{
    struct retention *retention = arena_new(arena, struct retention, 1);
    *retention = (struct retention){.rules = arena_new(arena, struct retention_entry, rules->count),
                                    .count = rules->count,
                                    .others = times_of(rules->now_ns, rules->default_s, 0),
                                    .latest_cutoff_ns = INT64_MIN};
    note_cutoff(retention, &retention->others);
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct catalogue_rule *rule = &rules->rules[i];
        retention->rules[i].times = times_of(rules->now_ns, rule->keep_s, rule->totals_s);
        note_cutoff(retention, &retention->rules[i].times);
        enum err_code code = selector_parse_stored(arena, span_text(rule->selector),
                                                   &retention->rules[i].selector, err);
        if (code)
            return err_add(err, "retention rule %u", i + 1);
    }
    *ret_retention = retention;
    return ERR_NONE;
}

void retention_set_budget(struct retention *retention, struct match_budget *budget)
{
    retention->budget = budget;
}

int64_t retention_latest_cutoff(const struct retention *retention)
{
    return retention->latest_cutoff_ns;
}

/* Returns the index of the first rule that matches the series; count: none does. */
static enum err_code find_rule(const struct retention *retention,
                               const struct dictionary *dictionary, uint32_t series,
                               uint32_t *ret_rule, struct err *err)
{
    uint32_t i = 0;
    for (bool matches = false; i < retention->count; i++) {
        enum err_code code = match_budget_check(retention->budget, err);
        if (!code)
            code =
                selector_matches(retention->rules[i].selector, dictionary, series, &matches, err);
        if (code)
            return code;
        if (matches)
            break;
    }
    *ret_rule = i;
    return ERR_NONE;
}

enum err_code retention_find(const struct retention *retention, const struct dictionary *dictionary,
                             uint32_t series, struct retention_times *ret_times, struct err *err)
{
    uint32_t rule = 0;
    match_budget_begin(retention->budget);
    const enum err_code code = find_rule(retention, dictionary, series, &rule, err);
    match_budget_end(retention->budget);
    if (!code)
        *ret_times = rule < retention->count ? retention->rules[rule].times : retention->others;
    return code;
}

int64_t retention_next_due(const struct retention_times *times, bool are_totals, int64_t end_ns)
{
    const int64_t age_s = are_totals && times->totals_s ? times->totals_s : times->keep_s;
    int64_t due_ns;
    if (!age_s || __builtin_mul_overflow(age_s, CLOCK_NS_PER_S, &due_ns) ||
        __builtin_add_overflow(due_ns, times->totals_s ? HOUR_NS : 0, &due_ns) ||
        __builtin_add_overflow(end_ns, due_ns, &due_ns))
        return INT64_MAX;
    return due_ns;
}

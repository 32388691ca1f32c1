/*
 * match_budget: limits the CPU time that a merge spends on matching series with the selectors of
 * deletions and retention rules.
 *
 * One thread merges for all teams, and a match with an expression may take milliseconds. A merge
 * has MATCH_BUDGET_NS, and MATCH_BUDGET_PAIR_NS more for each pair of a series and a selector. An
 * ordinary expression takes a fraction of the latter to match a value for the first time. A merge
 * that needs more fails; it is deferred like others that fail because of their team's data.
 *
 * Threads: one, as selectors. Private to store/.
 */
#ifndef STORE_CATALOGUE_MATCH_BUDGET_H
#define STORE_CATALOGUE_MATCH_BUDGET_H

#include "lib/base/err_code.h"

#include <stdint.h>

#define MATCH_BUDGET_NS INT64_C(5000000000)
#define MATCH_BUDGET_PAIR_NS INT64_C(2000)

struct match_budget {
    int64_t left_ns; /* CPU time; the owner sets it to MATCH_BUDGET_NS at first */
    /* Called several times a second while series are matched, to renew a lease; the matching ends
     * with its code unless that is ERR_NONE. NULL: none. */
    enum err_code (*renew)(void *context, struct err *err);
    void *context;
    int64_t begun_ns;   /* for match_budget.c: CPU time of the thread */
    int64_t settled_ns; /* monotonic: when left_ns was last reduced */
};

/* Call begin and end around the matching of each series (only the time between them is counted),
 * and check before each selector. With budget NULL all three do nothing. */
void match_budget_begin(struct match_budget *budget);
void match_budget_end(struct match_budget *budget);
/* Errors: ERR_INVALID (the budget is spent) and the codes of renew. */
enum err_code match_budget_check(struct match_budget *budget, struct err *err) MUST_USE;

#endif

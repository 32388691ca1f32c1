#include "store/catalogue/match_budget.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"

enum { SETTLE_MS = 100 };

/* Reading the CPU time costs a system call, so it is read twice for each series, and once in
 * SETTLE_MS while one is matched. */
static void settle(struct match_budget *budget)
{
    const int64_t now_ns = clock_thread_cpu_ns();
    budget->left_ns -= now_ns - budget->begun_ns;
    budget->begun_ns = now_ns;
    budget->settled_ns = clock_monotonic_ns();
}

void match_budget_begin(struct match_budget *budget)
{
    if (budget)
        budget->begun_ns = clock_thread_cpu_ns();
}

void match_budget_end(struct match_budget *budget)
{
    if (budget)
        budget->left_ns -= clock_thread_cpu_ns() - budget->begun_ns;
}

enum err_code match_budget_check(struct match_budget *budget, struct err *err)
{
    enum err_code code = ERR_NONE;
    if (!budget)
        return ERR_NONE;
    budget->left_ns += MATCH_BUDGET_PAIR_NS;
    if (clock_monotonic_ns() - budget->settled_ns > SETTLE_MS * CLOCK_NS_PER_MS) {
        settle(budget);
        code = budget->renew ? budget->renew(budget->context, err) : ERR_NONE;
    }
    if (!code && budget->left_ns < 0)
        code = err_set(err, ERR_INVALID,
                       "comparing series with the expressions of the team's deletions and "
                       "retention rules takes too long: simpler expressions are needed");
    return code;
}

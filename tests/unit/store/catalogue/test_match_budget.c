#include "tests/unit/test.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "store/catalogue/match_budget.h"

static enum err_code count_renewal(void *context, struct err *err)
{
    int *count = context;
    return ++*count == 3 ? err_set(err, ERR_CONFLICT, "the lease is lost") : ERR_NONE;
}

/* Matching a series that takes duration_ns of the thread's time. */
static enum err_code match_for(struct match_budget *budget, int64_t duration_ns, struct err *err)
{
    match_budget_begin(budget);
    const enum err_code code = match_budget_check(budget, err);
    budget->begun_ns -= duration_ns;
    match_budget_end(budget);
    return code;
}

static void ends_when_the_time_is_spent(void **state)
{
    (void)state;
    struct err err = {0};
    struct match_budget budget = {.left_ns = MATCH_BUDGET_NS, .settled_ns = INT64_MAX / 2};
    assert_int_equal(match_for(&budget, MATCH_BUDGET_NS / 4, &err), ERR_NONE);
    assert_int_equal(match_for(&budget, MATCH_BUDGET_NS / 4, &err), ERR_NONE);
    assert_int_equal(match_for(&budget, MATCH_BUDGET_NS, &err), ERR_NONE);
    assert_int_equal(match_for(&budget, 0, &err), ERR_INVALID);
}

static void each_comparison_adds_to_the_budget(void **state)
{
    (void)state;
    struct err err = {0};
    struct match_budget budget = {.settled_ns = INT64_MAX / 2};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(match_budget_check(&budget, &err), ERR_NONE);
    assert_int_equal(budget.left_ns, 1000 * MATCH_BUDGET_PAIR_NS);
}

static void renews_the_lease_and_returns_its_error(void **state)
{
    (void)state;
    struct err err = {0};
    int count = 0;
    struct match_budget budget = {
        .left_ns = MATCH_BUDGET_NS, .renew = count_renewal, .context = &count};
    match_budget_begin(&budget);
    for (int i = 1; i <= 3; i++) {
        budget.settled_ns = 0;
        assert_int_equal(match_budget_check(&budget, &err), i < 3 ? ERR_NONE : ERR_CONFLICT);
        assert_int_equal(count, i);
    }
}

static void without_a_budget_nothing_is_checked(void **state)
{
    (void)state;
    struct err err = {0};
    match_budget_begin(NULL);
    assert_int_equal(match_budget_check(NULL, &err), ERR_NONE);
    match_budget_end(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_when_the_time_is_spent),
        cmocka_unit_test(each_comparison_adds_to_the_budget),
        cmocka_unit_test(renews_the_lease_and_returns_its_error),
        cmocka_unit_test(without_a_budget_nothing_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

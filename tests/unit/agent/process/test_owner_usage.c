#include "tests/unit/test.h"

#include "agent/process/owner_usage.h"

static void each_owner_has_its_own_sum(void **state)
{
    (void)state;
    enum { OWNERS = 100 };
    struct owner_usage sums = {0};
    for (uint32_t i = 1; i <= OWNERS; i++)
        owner_usage_add(&sums, i, 10 * i);
    for (uint32_t i = 1; i <= OWNERS; i += 2)
        owner_usage_take(&sums, i, 10 * i);
    for (uint32_t i = 1; i <= OWNERS; i++)
        assert_int_equal(owner_usage_get(&sums, i), i % 2 ? 0 : 10 * i);
    assert_int_equal(sums.count, OWNERS / 2);
    owner_usage_fini(&sums);
}

static void an_owner_without_usage_is_not_stored(void **state)
{
    (void)state;
    struct owner_usage sums = {0};
    owner_usage_add(&sums, 0, 5);
    owner_usage_add(&sums, 1, 0);
    assert_int_equal(sums.count, 0);
    assert_int_equal(owner_usage_get(&sums, 0), 0);
    owner_usage_take(&sums, 0, 5);
    owner_usage_fini(&sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_owner_has_its_own_sum),
        cmocka_unit_test(an_owner_without_usage_is_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

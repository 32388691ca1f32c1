#include "tests/unit/test.h"

#include "store/maintain/tenant_costs.h"

#define SECOND INT64_C(1000000000)

static void a_tenant_is_costly_until_its_cost_has_fallen(void **state)
{
    (void)state;
    struct tenant_costs costs = {0};
    int64_t ids[TENANT_COSTS_COUNT];
    assert_int_equal(tenant_costs_list(&costs, 0, ids), 0);
    tenant_costs_add(&costs, 7, 2 * SECOND, 10 * SECOND);
    tenant_costs_add(&costs, 8, SECOND, 10 * SECOND);
    assert_int_equal(tenant_costs_list(&costs, 10 * SECOND, ids), 0);
    tenant_costs_add(&costs, 7, 4 * SECOND, 10 * SECOND);
    assert_int_equal(tenant_costs_list(&costs, 10 * SECOND, ids), 1);
    assert_int_equal(ids[0], 7);
    assert_int_equal(tenant_costs_list(&costs, 39 * SECOND, ids), 1);
    assert_int_equal(tenant_costs_list(&costs, 41 * SECOND, ids), 0);
    assert_int_equal(tenant_costs_list(&costs, INT64_MAX, ids), 0);
}

static void the_highest_costs_are_kept(void **state)
{
    (void)state;
    struct tenant_costs costs = {0};
    int64_t ids[TENANT_COSTS_COUNT];
    for (int64_t tenant_id = 1; tenant_id <= 1000; tenant_id++)
        tenant_costs_add(&costs, tenant_id, tenant_id % 100 ? SECOND : 5 * SECOND, SECOND);
    const uint32_t count = tenant_costs_list(&costs, SECOND, ids);
    assert_int_equal(count, 10);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(ids[i] % 100, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_is_costly_until_its_cost_has_fallen),
        cmocka_unit_test(the_highest_costs_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* When VACUUM FULL of the tables of shares is worth its lock. */
#include "tests/unit/test.h"

#include "api/ops/vacuum_full.h"

#define MIB ((uint64_t)1 << 20)

static void is_useful_if_most_of_the_tables_is_free(void **state)
{
    (void)state;
    assert_true(vacuum_full_is_useful(200 * MIB, 0));
    assert_true(vacuum_full_is_useful(1000 * MIB, 80 * MIB));
    assert_false(vacuum_full_is_useful(1000 * MIB, 900 * MIB));
    assert_false(vacuum_full_is_useful(2 * MIB, 0));
    assert_false(vacuum_full_is_useful(0, 0));
}

static void leaves_space_for_the_log(void **state)
{
    (void)state;
    assert_true(vacuum_full_has_space(80 * MIB, 106 * MIB));
    assert_false(vacuum_full_has_space(80 * MIB, 105 * MIB));
    assert_false(vacuum_full_has_space(0, 15 * MIB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_useful_if_most_of_the_tables_is_free),
        cmocka_unit_test(leaves_space_for_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "api/ingest/series_set.h"

static bool see(struct series_set *set, uint64_t hash, int64_t now_s, uint32_t most)
{
    bool is_pending;
    return series_set_see(set, hash, now_s, now_s - 100, most, &is_pending);
}

static uint64_t hash_of(uint64_t number)
{
    return number * UINT64_C(0x9E3779B97F4A7C15);
}

static void accepts_series_up_to_the_limit(void **state)
{
    (void)state;
    struct series_set set = {0};
    for (uint64_t i = 0; i < 5000; i++)
        assert_true(see(&set, hash_of(i), 1000, 5000));
    assert_false(see(&set, hash_of(5000), 1000, 5000));
    for (uint64_t i = 0; i < 5000; i++)
        assert_true(see(&set, hash_of(i), 1001, 5000));
    assert_int_equal(set.count, 5000);
    series_set_fini(&set);
}

static void inactive_series_free_space(void **state)
{
    (void)state;
    struct series_set set = {0};
    assert_true(see(&set, 1, 1000, 2));
    assert_true(see(&set, 2, 1090, 2));
    assert_false(see(&set, 3, 1099, 2));
    assert_true(see(&set, 3, 1110, 2));
    assert_false(see(&set, 1, 1111, 2));
    assert_int_equal(set.count, 2);
    series_set_fini(&set);
}

static void a_released_series_frees_its_slot(void **state)
{
    (void)state;
    struct series_set set = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        assert_true(see(&set, hash_of(i), 1000, 1));
        assert_false(see(&set, hash_of(i + 1), 1000, 1));
        series_set_settle(&set, hash_of(i), false);
        series_set_settle(&set, hash_of(i), false);
    }
    assert_int_equal(set.count, 0);
    assert_true(set.capacity < 1000);
    series_set_fini(&set);
}

/* Two requests add a series at the same time; in any order, it counts once one is stored. */
static void a_series_that_another_request_stored_stays_counted(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        struct series_set set = {0};
        bool is_pending;
        assert_true(series_set_see(&set, 7, 1000, 900, 1, &is_pending));
        assert_true(is_pending);
        assert_true(series_set_see(&set, 7, 1001, 900, 1, &is_pending));
        assert_true(is_pending);
        series_set_settle(&set, 7, order == 0);
        assert_int_equal(set.count, 1);
        series_set_settle(&set, 7, order == 1);
        assert_int_equal(set.count, order == 2 ? 0 : 1);
        if (order < 2) {
            assert_true(series_set_see(&set, 7, 1002, 900, 1, &is_pending));
            assert_false(is_pending);
            assert_false(see(&set, 8, 1002, 1));
        }
        series_set_fini(&set);
    }
}

static void a_limit_of_zero_refuses_all(void **state)
{
    (void)state;
    struct series_set set = {0};
    assert_false(see(&set, 1, 1000, 0));
    series_set_settle(&set, 1, false);
    series_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_series_up_to_the_limit),
        cmocka_unit_test(inactive_series_free_space),
        cmocka_unit_test(a_released_series_frees_its_slot),
        cmocka_unit_test(a_series_that_another_request_stored_stays_counted),
        cmocka_unit_test(a_limit_of_zero_refuses_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

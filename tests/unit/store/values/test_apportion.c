#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "store/values/apportion.h"
#include "store/values/spread.h"

#include <stdlib.h>

enum { GROUPS = 40, STEPS = 500, ROUNDS = 100 };

static void halves_of_two_groups_alternate(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct apportion apportion = apportion_create(arena, 2);
    const int64_t wanted[][2] = {{0, 1}, {1, 0}, {0, 1}};
    for (size_t step = 0; step < sizeof(wanted) / sizeof(wanted[0]); step++) {
        apportion.groups[0].sum = apportion.groups[1].sum = SPREAD_UNIT / 2;
        apportion_step(&apportion);
        assert_int_equal(apportion.groups[0].value, wanted[step][0]);
        assert_int_equal(apportion.groups[1].value, wanted[step][1]);
    }
}

static double difference_of(const struct apportion_group *group)
{
    return (double)group->running / SPREAD_UNIT - (double)group->given;
}

/* sign: 1: all values are positive; 0: some are negative. */
static void check_random(unsigned seed, int sign)
{
    arena_auto arena = arena_create();
    struct apportion apportion = apportion_create(arena, GROUPS);
    srandom(seed);
    const int64_t most = (random() % 40 + 1) * SPREAD_UNIT / 10;
    for (int step = 0; step < STEPS; step++) {
        int64_t sum = 0;
        const __int128 before = apportion.running;
        for (int i = 0; i < GROUPS; i++) {
            __int128 value = random() % 3 ? random() % most : 0;
            apportion.groups[i].sum = sign || random() % 2 ? value : -value;
        }
        apportion_step(&apportion);
        for (int i = 0; i < GROUPS; i++) {
            const struct apportion_group *group = &apportion.groups[i];
            assert_true(group->sum > 0   ? group->value >= 0
                        : group->sum < 0 ? group->value <= 0
                                         : !group->value);
            assert_true(difference_of(group) < 3 && difference_of(group) > -3);
            sum += group->value;
        }
        if (sign) {
            const int64_t due =
                (int64_t)((apportion.running + SPREAD_UNIT / 2) >> SPREAD_UNIT_BITS) -
                (int64_t)((before + SPREAD_UNIT / 2) >> SPREAD_UNIT_BITS);
            assert_int_equal(sum, due);
        }
    }
}

static void numbers_stay_near_their_sums(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        check_random(seed, 1);
        check_random(seed, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_of_two_groups_alternate),
        cmocka_unit_test(numbers_stay_near_their_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

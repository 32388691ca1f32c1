#include "tests/unit/test.h"

#include "agent/profile/window_quota.h"

enum { PIECE_BYTES = 512 };

static uint32_t take_all(struct window_quota *text, uint64_t owner)
{
    bool is_first = false;
    uint32_t count = 0;
    while (window_quota_take(text, owner, PIECE_BYTES, &is_first))
        count++;
    return count;
}

static void an_owner_may_use_half_of_what_is_left(void **state)
{
    (void)state;
    struct window_quota text = {0};
    uint32_t left = WINDOW_QUOTA_MAX_BYTES / PIECE_BYTES;
    for (uint32_t i = 1; i <= 200; i++) {
        const uint32_t taken = take_all(&text, i);
        assert_int_equal(taken, left / 2);
        left -= taken;
        assert_int_equal(window_quota_is_full(&text), i >= 3);
    }
    assert_true(text.used_bytes <= WINDOW_QUOTA_MAX_BYTES);
    /* Bytes that other owners have used meanwhile are not freed. */
    assert_int_equal(take_all(&text, 1), 0);
    window_quota_fini(&text);
    assert_int_equal(text.used_bytes, 0);
}

static void a_charge_may_exceed_the_limit(void **state)
{
    (void)state;
    struct window_quota text = {0};
    assert_true(window_quota_has_space(&text, 1));
    window_quota_charge(&text, 1, WINDOW_QUOTA_MAX_BYTES / 2);
    assert_false(window_quota_has_space(&text, 1));
    assert_true(window_quota_has_space(&text, 2));
    window_quota_charge(&text, 1, WINDOW_QUOTA_MAX_BYTES);
    assert_false(window_quota_has_space(&text, 2));
    assert_int_equal(take_all(&text, 2), 0);
    window_quota_fini(&text);
}

static void an_owner_that_reaches_its_limit_is_reported_once(void **state)
{
    (void)state;
    struct window_quota text = {0};
    bool is_first;
    assert_false(window_quota_take(&text, 1, WINDOW_QUOTA_MAX_BYTES, &is_first));
    assert_true(is_first);
    assert_false(window_quota_take(&text, 1, WINDOW_QUOTA_MAX_BYTES, &is_first));
    assert_false(is_first);
    assert_true(window_quota_take(&text, 1, PIECE_BYTES, &is_first)); /* something shorter fits */
    assert_false(window_quota_take(&text, 2, WINDOW_QUOTA_MAX_BYTES, &is_first));
    assert_true(is_first);
    window_quota_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_may_use_half_of_what_is_left),
        cmocka_unit_test(a_charge_may_exceed_the_limit),
        cmocka_unit_test(an_owner_that_reaches_its_limit_is_reported_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

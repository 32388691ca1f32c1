#include "tests/unit/test.h"

#include "cli/exit_code.h"

static void every_error_ends_with_a_failure(void **state)
{
    (void)state;
    for (unsigned code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++) {
        assert_int_not_equal(exit_code_of((enum err_code)code), EXIT_OK);
        assert_in_range(exit_code_of((enum err_code)code), EXIT_ERROR, EXIT_INVALID);
    }
    assert_int_equal(exit_code_of(ERR_CODE_COUNT), EXIT_ERROR);
}

static void codes_are_those_of_the_manual(void **state)
{
    (void)state;
    assert_int_equal(exit_code_of(ERR_NONE), 0);
    assert_int_equal(exit_code_of(ERR_IO), 1);
    assert_int_equal(exit_code_of(ERR_NETWORK), 3);
    assert_int_equal(exit_code_of(ERR_TIMEOUT), 3);
    assert_int_equal(exit_code_of(ERR_BUSY), 3);
    assert_int_equal(exit_code_of(ERR_UNAUTHENTICATED), 4);
    assert_int_equal(exit_code_of(ERR_FORBIDDEN), 4);
    assert_int_equal(exit_code_of(ERR_NOT_FOUND), 5);
    assert_int_equal(exit_code_of(ERR_GONE), 5);
    assert_int_equal(exit_code_of(ERR_TOO_LARGE), 6);
    assert_int_equal(exit_code_of(ERR_QUOTA), 6);
    assert_int_equal(exit_code_of(ERR_RATE_LIMITED), 6);
    assert_int_equal(exit_code_of(ERR_INVALID), 7);
    assert_int_equal(exit_code_of(ERR_UNSUPPORTED), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_ends_with_a_failure),
        cmocka_unit_test(codes_are_those_of_the_manual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

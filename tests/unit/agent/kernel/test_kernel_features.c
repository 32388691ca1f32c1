#include "agent/kernel/kernel_features.h"
#include "tests/unit/test.h"

#include <string.h>

static void chooses_the_loop_only_where_both_helpers_are(void **state)
{
    (void)state;
    assert_true(
        kernel_features_loop(&(struct kernel_features){.has_loop = true, .has_registers = true}));
    assert_false(kernel_features_loop(&(struct kernel_features){.has_loop = true}));
    assert_false(kernel_features_loop(&(struct kernel_features){.has_registers = true}));
}

static void says_what_a_kernel_lacks(void **state)
{
    (void)state;
    struct err err;
    const struct kernel_features without_types = {.has_ring = true};
    const struct kernel_features without_ring = {.has_types = true};
    const struct kernel_features enough = {.has_types = true, .has_ring = true};
    assert_int_equal(kernel_features_check(&without_types, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "CONFIG_DEBUG_INFO_BTF"));
    assert_int_equal(kernel_features_check(&without_ring, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "ring buffers"));
    assert_int_equal(kernel_features_check(&enough, &err), ERR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_the_loop_only_where_both_helpers_are),
        cmocka_unit_test(says_what_a_kernel_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

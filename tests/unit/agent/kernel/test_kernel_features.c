#include "agent/kernel/kernel_features.h"
#include "lib/base/err.h"
#include "tests/unit/test.h"

#include <string.h>

static void uses_the_loop_only_if_both_helpers_exist(void **state)
{
    (void)state;
    assert_true(
        kernel_features_loop(&(struct kernel_features){.has_loop = true, .has_registers = true}));
    assert_false(kernel_features_loop(&(struct kernel_features){.has_loop = true}));
    assert_false(kernel_features_loop(&(struct kernel_features){.has_registers = true}));
}

static void names_missing_kernel_features(void **state)
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
        cmocka_unit_test(uses_the_loop_only_if_both_helpers_exist),
        cmocka_unit_test(names_missing_kernel_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

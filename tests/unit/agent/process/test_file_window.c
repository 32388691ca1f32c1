#include "tests/unit/test.h"

#include "agent/process/file_window.h"
#include "lib/base/os.h"

#include <fcntl.h>

/* A call counts as a page, so that a limit of bytes also limits calls: a slow disk uses no CPU
 * time. */
static void a_call_counts_as_at_least_a_page(void **state)
{
    (void)state;
    struct file_window window;
    fd_auto nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    file_window_init(&window, nothing, 1 << 20);
    for (uint64_t i = 1; i <= 10; i++) {
        assert_null(file_window_get(&window, 4096 * i, 16));
        assert_int_equal(window.cost_bytes, FILE_WINDOW_LEAST_BYTES * i);
    }
    file_window_fini(&window);
}

static void a_mapped_window_is_not_read_again(void **state)
{
    (void)state;
    struct file_window window;
    fd_auto zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    file_window_init(&window, zeros, 1 << 20);
    assert_non_null(file_window_get(&window, 0, 16));
    const uint64_t cost_bytes = window.cost_bytes;
    assert_non_null(file_window_get(&window, 1000, 16));
    assert_int_equal(window.cost_bytes, cost_bytes);
    file_window_fini(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_counts_as_at_least_a_page),
        cmocka_unit_test(a_mapped_window_is_not_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "agent/unwind/unwind_failures.h"

#include <stdio.h>

static void assert_failures(const struct unwind_failures *failures, uint32_t limit,
                            const char *wanted)
{
    buf_auto text;
    buf_init(&text, 4096);
    unwind_failures_append(failures, limit, &text);
    buf_append_byte(&text, 0);
    assert_string_equal((const char *)text.data, wanted);
}

static void the_most_frequent_sites_come_first(void **state)
{
    (void)state;
    struct unwind_failures *failures = unwind_failures_create();
    assert_failures(failures, 8, "");
    unwind_failures_add(failures, UNWIND_STOP_FRAME_POINTER, "/bin/a");
    for (int i = 0; i < 3; i++)
        unwind_failures_add(failures, UNWIND_STOP_STACK_READ, "/bin/b");
    for (int i = 0; i < 2; i++)
        unwind_failures_add(failures, UNWIND_STOP_STACK_READ, "/bin/a");
    assert_failures(failures, 8,
                    "3 stack-read /bin/b, 2 stack-read /bin/a, 1 frame-pointer /bin/a");
    assert_failures(failures, 1, "3 stack-read /bin/b");
    unwind_failures_destroy(failures);
    unwind_failures_destroy(NULL);
}

static void further_sites_are_summed(void **state)
{
    (void)state;
    struct unwind_failures *failures = unwind_failures_create();
    for (int i = 0; i < 3000; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/bin/%d", i);
        unwind_failures_add(failures, UNWIND_STOP_TABLE, path);
    }
    assert_failures(failures, 1, "1976 elsewhere");
    unwind_failures_destroy(failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_frequent_sites_come_first),
        cmocka_unit_test(further_sites_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

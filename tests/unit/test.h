/*
 * test: included by every unit test, because cmocka needs these headers before its own, in this
 * order. If TEST_MAIN is defined (Makefile), main gets that name and is registered with the runner
 * (tests/unit/runner.c) as the tests of TEST_FILE.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

struct test_file {
    const char *name; /* "test_buf" */
    int (*run)(void);
    struct test_file *next;
};
void test_file_register(struct test_file *file);

/* How many random inputs a test uses: full if TEST_FULL is in the environment (make test-long),
 * else one eighth of that.
 */
int test_rounds(int full);

#ifdef TEST_MAIN
int TEST_MAIN(void);
__attribute__((constructor)) static void register_test_file(void)
{
    static struct test_file file = {TEST_FILE, TEST_MAIN, NULL};
    test_file_register(&file);
}
#define main TEST_MAIN
#endif

#endif

#include "tests/unit/test.h"

#include "agent/kernel/cpu_list.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

static struct cpu_list parse(struct arena *arena, const char *text)
{
    struct err err;
    uint32_t *cpus, count;
    assert_int_equal(cpu_list_parse(span_text(text), arena, &cpus, &count, &err), ERR_NONE);
    return (struct cpu_list){cpus, count};
}

static void assert_list(struct arena *arena, struct cpu_list list, const char *expected)
{
    const struct cpu_list wanted = *expected ? parse(arena, expected) : (struct cpu_list){0};
    assert_int_equal(list.count, wanted.count);
    for (uint32_t i = 0; i < list.count; i++)
        assert_int_equal(list.cpus[i], wanted.cpus[i]);
}

static void lists_of_the_kernel_are_parsed(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "x", "1-", "3-1", "1,1", "2,1", "0-99999"};
    arena_auto arena = arena_create();
    struct err err;
    uint32_t *cpus, count;
    assert_list(arena, parse(arena, "0-2,5\n"), "0,1,2,5");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(cpu_list_parse(span_text(wrong[i]), arena, &cpus, &count, &err),
                         ERR_INVALID);
}

/* online: the CPUs that are online now; sampled: those that were sampled before. */
static void assert_changes(const char *online, const char *sampled, const char *common,
                           const char *missing)
{
    arena_auto arena = arena_create();
    const struct cpu_list now = parse(arena, online), before = parse(arena, sampled);
    assert_list(arena, cpu_list_common(before, now, arena), common);
    assert_list(arena, cpu_list_difference(now, before, arena), missing);
}

static void cpus_that_are_new_or_came_back_are_found(void **state)
{
    (void)state;
    assert_changes("0-3", "0-3", "0-3", "");
    assert_changes("0-15", "0-3", "0-3", "4-15");
    assert_changes("0-3", "0,2", "0,2", "1,3");
    assert_changes("0", "0-3", "0", "");
    assert_changes("0,4-5", "0-3", "0", "4-5");
    assert_changes("7", "2-3", "", "7");
}

static void an_empty_list_has_no_cpu_in_common(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct cpu_list some = parse(arena, "0-1"), none = {0};
    assert_list(arena, cpu_list_common(some, none, arena), "");
    assert_list(arena, cpu_list_common(none, some, arena), "");
    assert_list(arena, cpu_list_difference(some, none, arena), "0-1");
    assert_list(arena, cpu_list_difference(none, some, arena), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_the_kernel_are_parsed),
        cmocka_unit_test(cpus_that_are_new_or_came_back_are_found),
        cmocka_unit_test(an_empty_list_has_no_cpu_in_common),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

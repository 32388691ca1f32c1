#include "tests/unit/test.h"

#include "lib/base/low_priority.h"

#include <pthread.h>
#include <sys/resource.h>

struct seen {
    int nice;
    int nice_of_child;
};

static void *read_nice(void *argument)
{
    int *nice = argument;
    *nice = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

static void look(void *context)
{
    struct seen *seen = context;
    pthread_t thread;
    read_nice(&seen->nice);
    assert_int_equal(pthread_create(&thread, NULL, read_nice, &seen->nice_of_child), 0);
    pthread_join(thread, NULL);
}

static void lowers_the_priority_during_the_call_only(void **state)
{
    (void)state;
    const int before = getpriority(PRIO_PROCESS, 0);
    const int wanted = before + LOW_PRIORITY_NICE < 19 ? before + LOW_PRIORITY_NICE : 19;
    struct seen seen = {0};
    low_priority_call(LOW_PRIORITY_NICE, look, &seen);
    assert_int_equal(seen.nice, wanted);
    assert_int_equal(seen.nice_of_child, wanted);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lowers_the_priority_during_the_call_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

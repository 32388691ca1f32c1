#include "agent/agent.h"
#include "bpf/shared.h"
#include "lib/base/err.h"
#include "tests/unit/test.h"

#include <assert.h>
#include <string.h>

static_assert(SAMPLE_EVENT_HEAD_BYTES == 80 && UNWIND_SHARD_BYTES == 4 << 20,
              "tests/bench/agent.py has these numbers");

static void assert_refused(const char *release, bool is_refused)
{
    struct err err;
    assert_int_equal(agent_check_kernel(release, &err), is_refused ? ERR_UNSUPPORTED : ERR_NONE);
    if (is_refused)
        assert_non_null(strstr(err.message, "--force"));
}

static void refuses_kernels_with_the_perf_event_deadlock(void **state)
{
    (void)state;
    assert_refused("5.19.0-46-generic", true);
    assert_refused("6.0.0-6-amd64", true);
    assert_refused("5.18.16", false);
    assert_refused("5.10.0-46-cloud-amd64", false);
    assert_refused("6.1.0-56-amd64", false);
    assert_refused("6.12.117+deb12-amd64", false);
    assert_refused("unknown", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_kernels_with_the_perf_event_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

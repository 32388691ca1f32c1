#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "tests/unit/test.h"

#include "api/query/query_title.h"
#include "lib/base/clock.h"
#include "lib/input/share_text.h"

#include <stdio.h>
#include <string.h>

#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
/* 26 November 2026, 18:34:00 UTC */
#define BEGIN_S INT64_C(1795718040)

static void assert_title(const char *type, const char *selector, int64_t seconds,
                         const char *wanted)
{
    arena_auto arena = arena_create();
    const char *title = query_title(arena, span_text(type), span_text(selector),
                                    BEGIN_S * CLOCK_NS_PER_S, (BEGIN_S + seconds) * CLOCK_NS_PER_S);
    assert_string_equal(title, wanted);
}

static void contains_type_service_labels_and_window(void **state)
{
    (void)state;
    assert_title(CPU, CPU "{service_name=\"payments\"}", 3600,
                 "CPU time, payments, 26 Nov 2026, 18:34–19:34 UTC");
    assert_title(CPU, CPU "{pod=~\"a|b\",service_name='payments'}", 12 * 3600,
                 "CPU time, payments, pod=~a|b, 26 Nov 2026, 18:34–27 Nov 2026, 06:34 UTC");
    assert_title("memory:inuse_space:bytes:space:bytes", "memory:inuse_space", 30,
                 "Memory in use, all services, 26 Nov 2026, 18:34:00–18:34:30 UTC");
    assert_title("odd:thing:count::", "{__profile_type__=\"odd:thing\",a!=\"\"}", 3600,
                 "thing, a!=, 26 Nov 2026, 18:34–19:34 UTC");
    assert_title("odd", "odd{service_name!=\"x\"}", 3600,
                 "odd, service_name!=x, 26 Nov 2026, 18:34–19:34 UTC");
}

static void values_are_unescaped(void **state)
{
    (void)state;
    assert_title(CPU, "{service_name=\"a \\\"b\\\" \\\\ {c}, d\"}", 3600,
                 "CPU time, a \"b\" \\ {c}, d, 26 Nov 2026, 18:34–19:34 UTC");
}

/* The title of any query is valid for a share. */
static void every_title_is_valid_for_a_share(void **state)
{
    (void)state;
    char selector[4000];
    struct err err;
    for (int size = 1; size < 1500; size += 37) {
        arena_auto arena = arena_create();
        int used = snprintf(selector, sizeof(selector), "{service_name=\"");
        for (int i = 0; i < size; i++)
            used +=
                snprintf(selector + used, sizeof(selector) - (size_t)used, "%s", i % 2 ? "ü" : "a");
        snprintf(selector + used, sizeof(selector) - (size_t)used, "\"}");
        const char *title = query_title(arena, span_text(selector), span_text(selector), 0, 1);
        assert_int_equal(
            share_text_check("title", span_text(title), SHARE_TITLE_CHARACTERS, true, &err),
            ERR_NONE);
    }
    const char *const odd[] = {"{a=\"\\n\\x01\"}", "{", "", "{a=\"\\\\\"}", "{a=`\x07`}"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        arena_auto arena = arena_create();
        const char *title = query_title(arena, span_text(":"), span_text(odd[i]), -1, INT64_MAX);
        assert_int_equal(
            share_text_check("title", span_text(title), SHARE_TITLE_CHARACTERS, true, &err),
            ERR_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contains_type_service_labels_and_window),
        cmocka_unit_test(values_are_unescaped),
        cmocka_unit_test(every_title_is_valid_for_a_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

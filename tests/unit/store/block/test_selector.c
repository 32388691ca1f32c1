/* Selectors of profile types: a type in braces is compared with the series' whole type by every
 * operator, and errors point at their position. */
#include "tests/unit/test.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "store/block/dictionary.h"
#include "store/block/selector.h"

#include <string.h>

static const struct span strings[] = {
    SPAN_LITERAL(""),       SPAN_LITERAL("process_cpu"), SPAN_LITERAL("cpu"),
    SPAN_LITERAL("memory"), SPAN_LITERAL("nanoseconds"), SPAN_LITERAL("inuse_space"),
    SPAN_LITERAL("bytes"),  SPAN_LITERAL("space"),       SPAN_LITERAL("pod"),
    SPAN_LITERAL("a"),
};
enum { STRING_COUNT = sizeof(strings) / sizeof(strings[0]), SERIES = 2, CPU = 1, MEMORY = 2 };
static const struct batch_label labels[] = {{8, 9}};
static const struct batch_series series[SERIES] = {
    {.type = {1, {2, 4}, {2, 4}, true}, .first_label = 0, .label_count = 1},
    {.type = {3, {5, 6}, {7, 6}, false}, .first_label = 0, .label_count = 1},
};

static unsigned matches_of(struct selector *selector)
{
    struct profile tables = {.strings = (struct span *)(uintptr_t)strings,
                             .string_count = STRING_COUNT};
    const struct dictionary dictionary = {.tables = &tables,
                                          .series = series,
                                          .series_labels = labels,
                                          .series_count = SERIES,
                                          .series_label_count = 1};
    unsigned found = 0;
    for (uint32_t i = 0; i < SERIES; i++) {
        bool matches;
        struct err err;
        assert_int_equal(selector_matches(selector, &dictionary, i, &matches, &err), ERR_NONE);
        found |= (unsigned)matches << i;
    }
    return found;
}

#define WHOLE_CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define WHOLE_MEMORY "memory:inuse_space:bytes:space:bytes"

static void types_are_compared_as_a_whole(void **state)
{
    static const struct {
        const char *text;
        unsigned found;
    } cases[] = {
        {"{__profile_type__=~\".*\"}", CPU | MEMORY},
        {"{__profile_type__=~\".+\"}", CPU | MEMORY},
        {"{__profile_type__=~\"memory:.*\"}", MEMORY},
        {"{__profile_type__=~\"memory\"}", 0},
        {"{__profile_type__=~\"" WHOLE_MEMORY "\"}", MEMORY},
        {"{__profile_type__=~\"" WHOLE_CPU "\"}", 0},
        {"{__profile_type__=~\"" WHOLE_CPU ":delta\"}", CPU},
        {"{__profile_type__=~\".*:delta\"}", CPU},
        {"{__profile_type__!~\"memory.*\"}", CPU},
        {"{__profile_type__!~\"memory.*\",pod=\"a\"}", CPU},
        {"{__profile_type__!~\"memory.*\",pod=\"b\"}", 0},
        {"{__profile_type__!~\".*\"}", 0},
        {"{__profile_type__!=\"" WHOLE_MEMORY "\"}", CPU},
        {"{__profile_type__!=\"memory:inuse_space\"}", CPU},
        {"{__profile_type__!=\"" WHOLE_CPU ":delta\"}", MEMORY},
        {"{__profile_type__!=\"" WHOLE_CPU "\"}", MEMORY},
        {"{__profile_type__!=\"none\"}", CPU | MEMORY},
        {"{__profile_type__!=\"\"}", CPU | MEMORY},
        {"{__profile_type__=\"inuse_space\"}", MEMORY},
        {"memory:inuse_space{__profile_type__=\"" WHOLE_MEMORY "\"}", MEMORY},
        {"memory:inuse_space{__profile_type__=~\"memory.*\"}", MEMORY},
        {"memory{__profile_type__!=\"" WHOLE_MEMORY "\"}", 0},
        {"{__profile_type__=\"memory:inuse_space\",__profile_type__=\"process_cpu:cpu\"}", 0},
        {"{__profile_type__=\"memory\",__profile_type__=\"inuse_space\"}", MEMORY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena_auto arena = arena_create();
        struct selector *selector, *again;
        struct err err;
        buf_auto text;
        buf_init(&text, SELECTOR_CANONICAL_MAX_BYTES);
        if (selector_parse(arena, span_text(cases[i].text), &selector, &err))
            fail_msg("%s: %s", cases[i].text, err.message);
        if (matches_of(selector) != cases[i].found)
            fail_msg("%s finds %u", cases[i].text, matches_of(selector));
        selector_append_canonical(selector, &text);
        assert_int_equal(selector_parse(arena, buf_span(&text), &again, &err), ERR_NONE);
        assert_int_equal(matches_of(again), cases[i].found);
    }
}

static void errors_point_at_their_position(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"{pod=\"a\",__name__=\"x\"}", "at character 10, here: __name__=\"x\"}"},
        {"{__a.b=~\"x\"}", "at character 2, here: __a.b"},
        {"{__profile_type__=\"\"}", "expected a profile type"},
        {"{__profile_type__!=\"1:2:3:4:5:6:7\"}", "at character 20, here"},
        {"}", "at character 1, here: }"},
        {"[", "at character 1, here: ["},
        {"sum(cpu)", "at character 4, here: (cpu)"},
        {"cpu:samples@now-1h", "at character 12, here: @now-1h"},
        {"cpu\"x\"", "at character 4, here: \"x\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena_auto arena = arena_create();
        struct selector *selector;
        struct err err;
        assert_int_equal(selector_parse(arena, span_text(cases[i].text), &selector, &err),
                         ERR_INVALID);
        if (!strstr(err.message, cases[i].wanted) || strncmp(err.message, "query: ", 7) != 0)
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_int_equal(
            selector_parse_named(arena, "match[] 2", span_text(cases[i].text), &selector, &err),
            ERR_INVALID);
        assert_memory_equal(err.message, "match[] 2: ", 11);
    }
}

/* A stored rule that is invalid today must not make queries fail. */
static void stored_selectors_are_read(void **state)
{
    static const char *const texts[] = {"{__name__=\"x\"}", "a(b)",
                                        "{__profile_type__!=\"1:2:3:4:5:6:7\",pod=\"a\"}"};
    static const unsigned found[] = {0, 0, CPU | MEMORY};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        arena_auto arena = arena_create();
        struct selector *selector;
        struct err err;
        assert_int_equal(selector_parse_stored(arena, span_text(texts[i]), &selector, &err),
                         ERR_NONE);
        assert_int_equal(matches_of(selector), found[i]);
    }
}

static void the_most_labels_and_a_type_are_accepted(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        arena_auto arena = arena_create();
        struct selector *selector;
        struct err err;
        buf_auto text;
        buf_init(&text, SELECTOR_MAX_BYTES);
        buf_append_text(&text, "memory{");
        for (int i = 0; i < SELECTOR_MAX_MATCHERS + more; i++)
            buf_printf(&text, "a%d!=\"x\",", i);
        buf_append_byte(&text, '}');
        assert_int_equal(selector_parse(arena, buf_span(&text), &selector, &err),
                         more ? ERR_INVALID : ERR_NONE);
        if (!more)
            assert_int_equal(matches_of(selector), MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_compared_as_a_whole),
        cmocka_unit_test(errors_point_at_their_position),
        cmocka_unit_test(stored_selectors_are_read),
        cmocka_unit_test(the_most_labels_and_a_type_are_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/test.h"

#include "api/share/source_link_matcher.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/profile/profile.h"
#include "lib/profile/profile_builder.h"

#include <stdio.h>
#include <string.h>

static struct profile *finish(struct profile_builder *builder)
{
    struct err err = {0};
    struct profile *profile;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    return profile;
}

static struct profile_builder *begin(void)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("hits"), SPAN_LITERAL("count"));
    return builder;
}

static void add_mapping(struct profile_builder *builder, uint64_t start, const char *file,
                        const char *build_id)
{
    const struct profile_mapping mapping = {
        .start = start,
        .limit = start + 1,
        .filename = profile_builder_string(builder, span_text(file)),
        .build_id = profile_builder_string(builder, span_text(build_id)),
    };
    (void)profile_builder_mapping(builder, &mapping);
}

/* count mappings of files "0" to "9" with build ids of id_bytes, equal or all different. */
static struct profile *make_mappings(uint32_t count, size_t id_bytes, bool are_equal)
{
    char id[20000], file[2] = "0";
    struct profile_builder *builder = begin();
    assert_true(id_bytes < sizeof(id));
    memset(id, 'a', id_bytes);
    id[id_bytes] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        char digits[9];
        snprintf(digits, sizeof(digits), "%08x", i);
        if (!are_equal)
            memcpy(id + id_bytes - 8, digits, 8);
        file[0] = (char)('0' + i % 10);
        add_mapping(builder, 1000 + i, file, id);
    }
    return finish(builder);
}

static struct span make_pattern(char pattern[256])
{
    memset(pattern, 'a', 255);
    pattern[0] = '*';
    pattern[254] = 'b';
    return span_of(pattern, 255);
}

static enum err_code find(const struct profile *profile, struct span pattern, uint64_t max_steps,
                          const atomic_bool *is_cancelled)
{
    struct err err = {0};
    arena_auto arena = arena_create();
    bool has_any = true;
    struct source_link_matcher *matcher =
        source_link_matcher_create(arena, profile, max_steps, is_cancelled);
    const enum err_code code = source_link_matcher_find_files(matcher, pattern, &has_any, &err);
    assert_true(code || !has_any);
    return code;
}

static void matches_wildcards(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *text;
        bool is_match;
    } cases[] = {
        {"", "", true},          {"", "a", false},       {"*", "", true},     {"**", "ab", true},
        {"a*c", "abbc", true},   {"a*c", "abcb", false}, {"?", "", false},    {"a?c", "abc", true},
        {"*b*d", "abcbd", true}, {"*34", "1234", true},  {"12*", "1", false}, {"ab", "abc", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t steps = 0;
        assert_int_equal(source_link_matcher_is_match(span_text(cases[i].pattern),
                                                      span_text(cases[i].text), &steps),
                         cases[i].is_match);
    }
}

static struct profile *make_labels(void)
{
    struct profile_builder *builder = begin();
    const int64_t value = 1;
    const uint32_t stack =
        profile_builder_frame(builder, &(struct profile_builder_frame){.name = span_text("f")});
    const struct profile_label labels[] = {
        {.key = profile_builder_string(builder, span_text("service")),
         .text = profile_builder_string(builder, span_text("shop"))},
        {.key = profile_builder_string(builder, span_text("bytes")),
         .number = 7,
         .is_numeric = true},
        {.key = profile_builder_string(builder, span_text("shop")),
         .text = profile_builder_string(builder, span_text("a=b"))},
    };
    profile_builder_add_sample(builder, &stack, 1, &value, labels, 3);
    return finish(builder);
}

static void finds_labels_of_samples(void **state)
{
    (void)state;
    struct err err = {0};
    arena_auto arena = arena_create();
    const struct span labels[] = {
        SPAN_LITERAL("service=shop"), SPAN_LITERAL("service=shop"), SPAN_LITERAL("service=bytes"),
        SPAN_LITERAL("shop=a=b"),     SPAN_LITERAL("bytes=7"),      SPAN_LITERAL("absent=absent"),
        SPAN_LITERAL("shop=service"),
    };
    enum { COUNT = sizeof(labels) / sizeof(labels[0]) };
    const bool expected[COUNT] = {true, true, false, true, false, false, false};
    bool has[COUNT];
    struct profile *profile = make_labels();
    struct source_link_matcher *matcher = source_link_matcher_create(arena, profile, 1000, NULL);
    assert_int_equal(source_link_matcher_find_labels(matcher, labels, COUNT, has, &err), ERR_NONE);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(has[i], expected[i]);
    profile_destroy(profile);
}

static void selects_each_file_once_for_each_pattern(void **state)
{
    (void)state;
    struct err err = {0};
    arena_auto arena = arena_create();
    struct span file;
    bool has_any;
    struct profile_builder *builder = begin();
    add_mapping(builder, 1, "app", "ABCD");
    add_mapping(builder, 2, "library", "ef01");
    add_mapping(builder, 3, "app", "ABCD");
    add_mapping(builder, 4, "", "ABCD");
    add_mapping(builder, 5, "plain", "");
    struct profile *profile = finish(builder);
    struct source_link_matcher *matcher = source_link_matcher_create(arena, profile, 1000, NULL);
    static const char *const patterns[] = {"AB*", "?bcd"}; /* of the profile; of the table */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            source_link_matcher_find_files(matcher, span_text(patterns[i]), &has_any, &err),
            ERR_NONE);
        assert_true(has_any && source_link_matcher_next_file(matcher, &file));
        assert_true(span_equal_text(file, "app"));
        assert_false(source_link_matcher_next_file(matcher, &file));
    }
    assert_int_equal(source_link_matcher_find_files(matcher, span_text("x*"), &has_any, &err),
                     ERR_NONE);
    assert_false(has_any);
    profile_destroy(profile);
}

static void compares_an_id_of_many_mappings_once(void **state)
{
    (void)state;
    enum { MAPPINGS = 10000, ID_BYTES = 256 };
    char pattern[256];
    struct profile *profile = make_mappings(MAPPINGS, ID_BYTES, true);
    /* The profile's text and the key of the table are compared: at most 256 * 255 steps each. */
    assert_int_equal(find(profile, make_pattern(pattern), MAPPINGS + 2 * 256 * 256, NULL),
                     ERR_NONE);
    profile_destroy(profile);
}

static void compares_no_id_that_cannot_have_a_table(void **state)
{
    (void)state;
    char pattern[256];
    struct profile *profile = make_mappings(100, 16000, false);
    assert_int_equal(find(profile, make_pattern(pattern), 1000, NULL), ERR_NONE);
    profile_destroy(profile);
}

static void ends_after_the_steps_and_when_the_client_has_gone(void **state)
{
    (void)state;
    char pattern[256];
    atomic_bool is_cancelled = true;
    struct profile *profile = make_mappings(100, 256, false);
    assert_int_equal(find(profile, make_pattern(pattern), 1000000, NULL), ERR_TOO_LARGE);
    assert_int_equal(
        find(profile, make_pattern(pattern), SOURCE_LINK_MATCHER_MAX_STEPS, &is_cancelled),
        ERR_CANCELLED);
    assert_int_equal(find(profile, make_pattern(pattern), SOURCE_LINK_MATCHER_MAX_STEPS, NULL),
                     ERR_NONE);
    profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_wildcards),
        cmocka_unit_test(finds_labels_of_samples),
        cmocka_unit_test(selects_each_file_once_for_each_pattern),
        cmocka_unit_test(compares_an_id_of_many_mappings_once),
        cmocka_unit_test(compares_no_id_that_cannot_have_a_table),
        cmocka_unit_test(ends_after_the_steps_and_when_the_client_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

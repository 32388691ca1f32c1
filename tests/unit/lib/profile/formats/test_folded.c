#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/profile/formats/folded.h"

static void equal_stacks_are_added_up(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("a;b;c 1\na;b;c 1\na;b;d 4\na;b;c 3\na;b 5\n"));
    assert_int_equal(profile->sample_count, 3);
    assert_int_equal(profile->comment_count, 0);
    assert_type(profile, 0, "samples", "count");
    assert_stacks(profile, "", "a;b 5\na;b;c 5\na;b;d 4\n");
    profile_destroy(profile);
}

static void names_keep_blanks_and_recursion_nests(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        folded_decode, SPAN_LITERAL("main;operator new(unsigned long);f<int, char> 2\r\n"
                                    "  main;a;a;a\t7  \r\n"
                                    "{main};Closure::{closure} 1"));
    assert_stacks(profile, "",
                  "main;a;a;a 7\n"
                  "main;operator new(unsigned long);f<int, char> 2\n"
                  "{main};Closure::{closure} 1\n");
    profile_destroy(profile);
}

static void lines_without_a_value_are_skipped_and_counted(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("# a comment 12\n// another 3\n\na;b 1\nno value\n"
                                                "42\na;b twelve\na;c 2\na;d 3\na;e 4\n"));
    assert_stacks(profile, "", "a;b 1\na;c 2\na;d 3\na;e 4\n");
    assert_int_equal(profile->comment_count, 1);
    assert_true(span_equal_text(profile_string(profile, profile->comments[0]),
                                "3 lines were skipped: no stack with a value"));
    assert_int_equal(profile->warning, profile->comments[0]);
    profile_destroy(profile);
}

static void text_with_many_other_lines_is_refused(void **state)
{
    (void)state;
    static const char *const others[] = {"no value", "42", "a;b twelve", "a;b 0x10", "a;b nan"};
    for (size_t stacks = 0; stacks < 60; stacks += 1) {
        for (size_t skipped = 0; skipped < 10; skipped++) {
            struct profile *profile = NULL;
            struct err err = {0};
            buf_auto text;
            buf_init(&text, 10000);
            for (size_t i = 0; i < stacks; i++)
                buf_append_text(&text, "main;a 1\n");
            for (size_t i = 0; i < skipped; i++)
                buf_printf(&text, "%s\n", others[i % (sizeof(others) / sizeof(others[0]))]);
            const bool is_read =
                stacks && (skipped * 10 <= stacks || (skipped <= 3 && skipped < stacks));
            const enum err_code code = folded_decode(buf_span(&text), NULL, &profile, &err);
            assert_int_equal(code, is_read ? ERR_NONE : ERR_INVALID);
            if (code && stacks)
                assert_non_null(
                    strstr(err.message, "not a folded stack with a value, the first is"));
            profile_destroy(profile);
        }
    }
}

static void stacks_with_two_values_are_a_comparison(void **state)
{
    (void)state;
    struct profile *profile;
    struct err err;
    for (const char *const *text =
             (const char *const[]){"a;b 1 2\nc 0 3\n", "# d\na;b .5 1e2\na -1 1\n", "a;b 1 2",
                                   NULL};
         *text; text++) {
        assert_int_equal(folded_decode(span_text(*text), NULL, &profile, &err), ERR_UNSUPPORTED);
        assert_non_null(strstr(err.message, "two values"));
    }
    profile = decode_text(folded_decode, SPAN_LITERAL("worker 1 20\nworker 2 10\n"));
    assert_stacks(profile, "", "worker 1 20\nworker 2 10\n");
    profile_destroy(profile);
    profile = decode_text(folded_decode, SPAN_LITERAL("main;worker 1 20\nmain 10\n"));
    assert_stacks(profile, "", "main 10\nmain;worker 1 20\n");
    profile_destroy(profile);
}

static void frames_may_begin_like_comments(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        folded_decode, SPAN_LITERAL("//pkg:lib;main 10\n# python;x 7\n//pkg:tool 3\nfoo;bar 5\n"
                                    "# samples: 9\n// of 9\n//\n#\n//nothing;more\n"));
    assert_stacks(profile, "", "# python;x 7\n//pkg:lib;main 10\n//pkg:tool 3\nfoo;bar 5\n");
    assert_int_equal(profile->comment_count, 0);
    profile_destroy(profile);
}

static void decimals_are_written_as_they_were_read(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        folded_decode, SPAN_LITERAL("a;b 0.5\na;c 1000000\na;d 1.25\na;e -0.05\na;f 3.40\n"));
    assert_stacks(profile, "", "a;b 0.5\na;c 1000000\na;d 1.25\na;e -0.05\na;f 3.4\n");
    profile_destroy(profile);
}

static void text_without_any_stack_is_refused(void **state)
{
    (void)state;
    assert_refused(folded_decode, "", NULL, ERR_INVALID, "no line");
    assert_refused(folded_decode, "hello world\n# a 1\n12\n", NULL, ERR_INVALID, "no line");
}

static void decimals_are_kept_by_scaling(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("a 1.25\nb 2\nc 0.5\nd -0.25\n"));
    assert_type(profile, 0, "samples", "count/100");
    const int64_t hundredths[] = {125, 200, 50, -25};
    assert_memory_equal(profile->values, hundredths, sizeof(hundredths));
    profile_destroy(profile);
    profile = decode_text(folded_decode, SPAN_LITERAL("a 1e-3\nb 2.00000049\n"));
    assert_type(profile, 0, "samples", "count/1000000");
    const int64_t millionths[] = {1000, 2000000};
    assert_memory_equal(profile->values, millionths, sizeof(millionths));
    profile_destroy(profile);
    profile = decode_text(folded_decode, SPAN_LITERAL("a 1e3\nb 1\nc 12345678901234e0\n"));
    assert_type(profile, 0, "samples", "count");
    const int64_t whole[] = {1000, 1, 12345678901234};
    assert_memory_equal(profile->values, whole, sizeof(whole));
    profile_destroy(profile);
    profile =
        decode_text(folded_decode, SPAN_LITERAL("a 1e3\nb 2.5e0\nc 25E-2\nd 1e-999999999999\n"));
    assert_type(profile, 0, "samples", "count/1000000"); /* d is practically zero */
    profile_destroy(profile);
    profile = decode_text(folded_decode, SPAN_LITERAL("a 1e3\nb 2.5e0\nc 25E-2\n"));
    assert_type(profile, 0, "samples", "count/100");
    const int64_t hundreds[] = {100000, 250, 25};
    assert_memory_equal(profile->values, hundreds, sizeof(hundreds));
    profile_destroy(profile);
}

static void values_at_the_end_of_the_range_are_kept(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        folded_decode, SPAN_LITERAL("a 9223372036854775807\na 9223372036854775807\n"
                                    "b -9223372036854775808\nc 99999999999999999999\n"));
    const int64_t values[] = {INT64_MAX, INT64_MAX, INT64_MIN};
    assert_int_equal(profile->sample_count, 3);
    assert_memory_equal(profile->values, values, sizeof(values));
    assert_int_equal(profile->comment_count, 1); /* c exceeds the range of an integer */
    profile_destroy(profile);
}

static void large_values_reduce_the_number_of_decimals(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(folded_decode, SPAN_LITERAL("a 9223372036854775805\nb 0.5\n"));
    assert_type(profile, 0, "samples", "count");
    assert_stacks(profile, "", "a 9223372036854775805\nb 1\n");
    profile_destroy(profile);
    profile = decode_text(folded_decode, SPAN_LITERAL("a -50000000000000001\nb 1.2345\n"));
    assert_type(profile, 0, "samples", "count/100");
    const int64_t hundredths[] = {-5000000000000000100, 123};
    assert_memory_equal(profile->values, hundredths, sizeof(hundredths));
    assert_stacks(profile, "", "a -50000000000000001\nb 1.23\n");
    profile_destroy(profile);
}

static void annotations_determine_the_kind_of_a_frame(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        folded_decode, SPAN_LITERAL("app;read_[k] 2\napp;Foo.bar_[j];Foo.get_[i];Foo.at_[i] 3\n"));
    assert_stacks(profile, "", "app;Foo.bar_[j];Foo.get_[i];Foo.at_[i] 3\napp;read_[k] 2\n");
    assert_stacks_by(profile, "", "binary", "<unknown>;[jit] 3\n<unknown>;[kernel.kallsyms] 2\n");
    uint32_t inlining = 0;
    for (uint32_t i = 0; i < profile->location_count; i++)
        inlining += profile->locations[i].line_count == 3;
    assert_int_equal(inlining, 1);
    profile_destroy(profile);
}

static void an_inlined_frame_without_a_caller_is_a_frame(void **state)
{
    (void)state;
    struct profile *profile = decode_text(folded_decode, SPAN_LITERAL("a_[i];b_[i] 1\nc_[i] 2\n"));
    assert_stacks(profile, "", "a_[i];b_[i] 1\nc_[i] 2\n");
    profile_destroy(profile);
}

static void limits_are_kept(void **state)
{
    (void)state;
    const struct profile_limits depth = {.stack_depth = 3};
    assert_refused(folded_decode, "a;b;c;d 1\n", &depth, ERR_TOO_LARGE, "3");
    const struct profile_limits samples = {.sample_count = 2};
    assert_refused(folded_decode, "a 1\nb 1\nc 1\n", &samples, ERR_TOO_LARGE, "samples");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_stacks_are_added_up),
        cmocka_unit_test(names_keep_blanks_and_recursion_nests),
        cmocka_unit_test(lines_without_a_value_are_skipped_and_counted),
        cmocka_unit_test(text_with_many_other_lines_is_refused),
        cmocka_unit_test(frames_may_begin_like_comments),
        cmocka_unit_test(decimals_are_written_as_they_were_read),
        cmocka_unit_test(text_without_any_stack_is_refused),
        cmocka_unit_test(decimals_are_kept_by_scaling),
        cmocka_unit_test(values_at_the_end_of_the_range_are_kept),
        cmocka_unit_test(large_values_reduce_the_number_of_decimals),
        cmocka_unit_test(annotations_determine_the_kind_of_a_frame),
        cmocka_unit_test(an_inlined_frame_without_a_caller_is_a_frame),
        cmocka_unit_test(stacks_with_two_values_are_a_comparison),
        cmocka_unit_test(limits_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

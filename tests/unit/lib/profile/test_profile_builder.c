#include "tests/unit/lib/profile/stacks.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/profile/profile_builder.h"

static struct profile_builder *new_builder(const struct profile_limits *limits)
{
    struct profile_builder *builder = profile_builder_create(limits);
    profile_builder_add_value_type(builder, SPAN_LITERAL("cpu"), SPAN_LITERAL("ns"));
    return builder;
}

static uint32_t add_frame(struct profile_builder *builder, const char *name)
{
    const struct profile_builder_frame frame = {.name = span_text(name)};
    return profile_builder_frame(builder, &frame);
}

static void add(struct profile_builder *builder, uint32_t leaf, uint32_t root, int64_t value)
{
    const uint32_t stack[] = {leaf, root};
    profile_builder_add_sample(builder, stack, 2, &value, NULL, 0);
}

static struct profile *take(struct profile_builder *builder)
{
    struct profile *profile = NULL;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    return profile;
}

static void equal_things_become_one(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    uint32_t a = add_frame(builder, "a"), b = add_frame(builder, "b");
    assert_int_equal(add_frame(builder, "a"), a);
    add(builder, a, b, 3);
    add(builder, b, a, 5);
    add(builder, a, b, 4);
    struct profile *profile = take(builder);
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->function_count, 2);
    assert_stacks(profile, "", "a;b 5\nb;a 7\n");
    profile_destroy(profile);
}

static void a_frozen_builder_adds_nothing_new(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    const uint32_t a = add_frame(builder, "a"),
                   name = profile_builder_string(builder, SPAN_LITERAL("b"));
    const struct profile_function known = {.name =
                                               profile_builder_string(builder, SPAN_LITERAL("a")),
                                           .system_name =
                                               profile_builder_string(builder, SPAN_LITERAL("a"))},
                                  unknown = {.name = name};
    const struct profile_mapping mapping = {.start = 7};
    const struct profile_location location = {.address = 7, .mapping = PROFILE_NONE};
    const struct profile_builder_counts before = profile_builder_count(builder);
    profile_builder_freeze(builder, true);
    assert_int_equal(add_frame(builder, "a"), a);
    assert_int_not_equal(profile_builder_function(builder, &known), PROFILE_NONE);
    assert_int_equal(profile_builder_function(builder, &unknown), PROFILE_NONE);
    assert_int_equal(profile_builder_mapping(builder, &mapping), PROFILE_NONE);
    assert_int_equal(profile_builder_location(builder, &location, NULL, 0), PROFILE_NONE);
    const struct profile_builder_counts now = profile_builder_count(builder);
    assert_memory_equal(&before, &now, sizeof(now));
    profile_builder_freeze(builder, false);
    assert_int_equal(profile_builder_location(builder, &location, NULL, 0), now.locations);
}

static void a_partial_view_has_the_selected_samples(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    const uint32_t a = add_frame(builder, "a"), b = add_frame(builder, "b");
    add(builder, a, b, 3);
    add(builder, b, a, 5);
    add(builder, a, a, 7);
    struct profile *profile = take(builder);
    const struct profile first = profile_samples(profile, 0, 1),
                         rest = profile_samples(profile, 1, 2);
    assert_stacks(&first, "", "b;a 3\n");
    assert_stacks(&rest, "", "a;a 7\na;b 5\n");
    profile_destroy(profile);
}

static void samples_with_different_labels_stay_separate(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    uint32_t a = add_frame(builder, "a");
    const int64_t one = 1;
    struct profile_label label = {.key = profile_builder_string(builder, SPAN_LITERAL("thread"))};
    label.text = profile_builder_string(builder, SPAN_LITERAL("main"));
    profile_builder_add_sample(builder, &a, 1, &one, &label, 1);
    label.number = 77; /* ignored in a text label */
    profile_builder_add_sample(builder, &a, 1, &one, &label, 1);
    label.is_numeric = true;
    profile_builder_add_sample(builder, &a, 1, &one, &label, 1);
    profile_builder_add_sample(builder, &a, 1, &one, NULL, 0);
    struct profile *profile = take(builder);
    assert_int_equal(profile->sample_count, 3);
    assert_int_equal(profile->values[0], 2);
    assert_int_equal(profile->labels[1].number, 77);
    profile_destroy(profile);
}

static void samples_stay_separate_if_their_sum_would_overflow(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    uint32_t a = add_frame(builder, "a"), b = add_frame(builder, "b");
    add(builder, a, b, INT64_MAX);
    add(builder, a, b, 1);
    add(builder, b, a, INT64_MIN);
    add(builder, b, a, -1);
    add(builder, b, a, 2);
    struct profile *profile = take(builder);
    assert_int_equal(profile->sample_count, 4);
    const int64_t values[] = {INT64_MAX, 1, INT64_MIN, 1};
    assert_memory_equal(profile->values, values, sizeof(values));
    profile_destroy(profile);
}

/* When the table of samples grew, each of them was moved past all others: 49 s. */
static void many_samples_whose_sum_would_overflow_take_linear_time(void **state)
{
    (void)state;
    enum { COUNT = 200000, CPU_MS = 5000 };
    profile_builder_auto builder = new_builder(NULL);
    const uint32_t frame = add_frame(builder, "main");
    const int64_t start_ns = clock_thread_cpu_ns();
    for (int i = 0; i < COUNT; i++)
        add(builder, frame, frame, INT64_MAX / 2 + 1);
    struct profile *profile = take(builder);
    assert_true(clock_thread_cpu_ns() - start_ns < CPU_MS * CLOCK_NS_PER_MS);
    assert_int_equal(profile->sample_count, COUNT);
    profile_destroy(profile);
}

static void frames_have_locations(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    const struct profile_builder_frame frame = {.name = SPAN_LITERAL("f"),
                                                .filename = SPAN_LITERAL("f.c"),
                                                .mapping = SPAN_LITERAL("/bin/f"),
                                                .address = 0x1234,
                                                .line = 7,
                                                .column = 3,
                                                .start_line = 5};
    const struct profile_builder_frame bare = {
        .mapping = SPAN_LITERAL("/bin/f"), .address = 0x99, .is_not_symbolised = true};
    uint32_t leaf = profile_builder_frame(builder, &frame);
    add(builder, leaf, profile_builder_frame(builder, &bare), 1);
    struct profile *profile = take(builder);
    assert_int_equal(profile->lines[0].line, 7);
    assert_int_equal(profile->lines[0].column, 3);
    assert_int_equal(profile->functions[0].start_line, 5);
    assert_int_equal(profile->locations[1].line_count, 0);
    assert_stacks(profile, "", "f+0x99;f 1\n");
    profile_destroy(profile);
}

static void lines_without_a_function_are_left_out(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    const struct profile_location location = {.address = 5, .mapping = PROFILE_NONE};
    const struct profile_line line = {.function = PROFILE_NONE, .line = 3};
    uint32_t index = profile_builder_location(builder, &location, &line, 1);
    add(builder, index, index, 1);
    struct profile *profile = take(builder);
    assert_int_equal(profile->locations[index].line_count, 0);
    profile_destroy(profile);
}

/* After a limit is exceeded, calls have no effect, and finishing reports the limit. */
static void assert_limited(const struct profile_limits *limits, const char *words)
{
    profile_builder_auto builder = new_builder(limits);
    struct profile *profile = NULL;
    struct err err;
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof(name), "function %d", i);
        uint32_t frame = add_frame(builder, name);
        add(builder, frame, frame, i);
        profile_builder_add_comment(builder, span_text(name));
    }
    assert_true(profile_builder_failed(builder));
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, words));
    assert_null(profile);
}

static void limits_are_kept(void **state)
{
    (void)state;
    assert_limited(&(struct profile_limits){.sample_count = 10}, "samples");
    assert_limited(&(struct profile_limits){.stack_depth = 1}, "frames in one stack");
    assert_limited(&(struct profile_limits){.stack_entries = 9}, "stack entries");
    assert_limited(&(struct profile_limits){.memory_bytes = 3000}, "bytes when decoded");
}

static void needs_a_value_type(void **state)
{
    (void)state;
    profile_builder_auto builder = profile_builder_create(NULL);
    struct profile *profile = NULL;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_INVALID);
}

static void many_entries_are_found(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            char name[32];
            snprintf(name, sizeof(name), "f%u", i);
            assert_int_equal(add_frame(builder, name), i);
            add(builder, i, (i * 31) % (i + 1), 1);
        }
    }
    struct profile *profile = take(builder);
    assert_int_equal(profile->sample_count, 5000);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(profile->values[i], 2);
    profile_destroy(profile);
}

static void comments_can_be_added_to_a_finished_profile(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    profile_builder_add_comment(builder, SPAN_LITERAL("first"));
    struct profile *profile = take(builder);
    const uint32_t string_count = profile->string_count;
    const struct span more[] = {SPAN_LITERAL("second"), SPAN_LITERAL("cpu"),
                                SPAN_LITERAL("second")};
    static const char *const wanted[] = {"first", "second", "cpu", "second"};
    profile_add_comments(profile, more, 3);
    assert_int_equal(profile->comment_count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(span_equal_text(profile_string(profile, profile->comments[i]), wanted[i]));
    assert_int_equal(profile->comments[2], profile->value_types[0].type);
    assert_int_equal(profile->string_count, string_count + 1);
    profile_destroy(profile);
}

static void a_mapping_is_swapped_with_the_first(void **state)
{
    (void)state;
    profile_builder_auto builder = new_builder(NULL);
    static const char *const files[] = {"zero", "one", "two"};
    uint32_t stack[4];
    for (uint32_t i = 0; i < 3; i++)
        stack[i] = profile_builder_frame(
            builder, &(struct profile_builder_frame){.name = span_text("f"),
                                                     .mapping = span_text(files[i])});
    stack[3] =
        profile_builder_frame(builder, &(struct profile_builder_frame){.name = span_text("alone")});
    struct profile *profile = take(builder);
    profile_put_mapping_first(profile, 2);
    assert_true(span_equal_text(profile_string(profile, profile->mappings[0].filename), "two"));
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t mapping = profile->locations[stack[i]].mapping;
        const uint32_t filename = profile->mappings[mapping].filename;
        assert_true(span_equal_text(profile_string(profile, filename), files[i]));
    }
    assert_int_equal(profile->locations[stack[3]].mapping, PROFILE_NONE);
    profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_things_become_one),
        cmocka_unit_test(a_frozen_builder_adds_nothing_new),
        cmocka_unit_test(a_partial_view_has_the_selected_samples),
        cmocka_unit_test(samples_with_different_labels_stay_separate),
        cmocka_unit_test(samples_stay_separate_if_their_sum_would_overflow),
        cmocka_unit_test(many_samples_whose_sum_would_overflow_take_linear_time),
        cmocka_unit_test(frames_have_locations),
        cmocka_unit_test(lines_without_a_function_are_left_out),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(needs_a_value_type),
        cmocka_unit_test(many_entries_are_found),
        cmocka_unit_test(comments_can_be_added_to_a_finished_profile),
        cmocka_unit_test(a_mapping_is_swapped_with_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

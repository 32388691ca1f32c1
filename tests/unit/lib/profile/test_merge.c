#include "lib/base/err.h"
#include "tests/unit/lib/profile/maker.h"
#include "tests/unit/lib/profile/reports.h"

#include "lib/base/clock.h"
#include "lib/profile/merge.h"
#include "lib/profile/profile_builder.h"

static struct profile *merge(const struct profile *const *profiles, size_t count)
{
    struct profile *merged = NULL;
    struct err err = {0};
    if (merge_profiles(profiles, count, NULL, &merged, &err))
        print_error("%s\n", err.message);
    assert_non_null(merged);
    return merged;
}

static void samples_add_up(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct profile *const both[] = {folded_profile(arena, "a;b 5\na;c 1\n"),
                                          folded_profile(arena, "a;b 7\na 2\n"),
                                          folded_profile(arena, "a;b 1\n")};
    struct profile *merged = merge(both, 3);
    assert_int_equal(merged->sample_count, 3);
    assert_stacks(merged, "", "a 2\na;b 13\na;c 1\n");
    profile_destroy(merged);
}

static const struct profile *with_labels(struct arena *arena, uint32_t count, bool is_reversed)
{
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    struct profile_label *labels = arena_new(arena, struct profile_label, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *key = arena_printf(arena, "key%u", is_reversed ? count - 1 - i : i);
        labels[i] = (struct profile_label){.key = profile_builder_string(builder, span_text(key)),
                                           .number = 7,
                                           .is_numeric = true};
    }
    const int64_t one = 1;
    profile_builder_add_sample(builder, NULL, 0, &one, labels, count);
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static void the_order_of_labels_does_not_count(void **state)
{
    (void)state;
    static const uint32_t counts[] = {2, 24, 25, 3000};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        arena_auto arena = arena_create();
        const struct profile *const both[] = {with_labels(arena, counts[i], false),
                                              with_labels(arena, counts[i], true)};
        struct profile *merged = merge(both, 2);
        assert_int_equal(merged->sample_count, 1);
        assert_int_equal(merged->values[0], 2);
        profile_destroy(merged);
    }
}

/* When each mapping copied and hashed the name, this took 4 GB and several seconds. */
static void a_long_name_of_many_mappings_costs_once(void **state)
{
    (void)state;
    enum { MAPPING_COUNT = 4000, NAME_BYTES = 1 << 20, CPU_MS = 1000 };
    arena_auto arena = arena_create();
    char *name = arena_new(arena, char, NAME_BYTES + 1);
    memset(name, 'n', NAME_BYTES);
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    const uint32_t string = profile_builder_string(builder, span_text(name));
    for (uint32_t i = 0; i < MAPPING_COUNT; i++) {
        const struct profile_mapping mapping = {.offset = i, .filename = string};
        const struct profile_location location = {.mapping =
                                                      profile_builder_mapping(builder, &mapping)};
        const int64_t one = 1;
        uint32_t stack = profile_builder_location(builder, &location, NULL, 0);
        profile_builder_add_sample(builder, &stack, 1, &one, NULL, 0);
    }
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    arena_on_destroy(arena, destroy_profile, profile);
    const int64_t start_ns = clock_thread_cpu_ns();
    struct profile *merged = merge((const struct profile *[]){profile, profile}, 2);
    assert_true(clock_thread_cpu_ns() - start_ns < CPU_MS * CLOCK_NS_PER_MS);
    assert_int_equal(merged->mapping_count, MAPPING_COUNT);
    profile_destroy(merged);
}

/* A run of a program whose binary is mapped at start. */
static const struct profile *run(struct arena *arena, uint64_t start, const char *build_id,
                                 int64_t time_ns, const char *comment, bool is_swapped)
{
    profile_builder_auto builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    const struct profile_mapping mapping = {
        .start = start,
        .limit = start + 0x800 + (uint64_t)(time_ns % 7),
        .filename = profile_builder_string(builder, SPAN_LITERAL("/bin/app")),
        .build_id = profile_builder_string(builder, span_text(build_id))};
    const struct profile_location location = {
        .address = start + 0x123, .mapping = profile_builder_mapping(builder, &mapping)};
    uint32_t stack = profile_builder_location(builder, &location, NULL, 0);
    struct profile_label labels[2] = {
        {.key = profile_builder_string(builder, span_text(is_swapped ? "b" : "a"))},
        {.key = profile_builder_string(builder, span_text(is_swapped ? "a" : "b"))}};
    labels[0].text = labels[1].text = profile_builder_string(builder, SPAN_LITERAL("x"));
    const int64_t one = 1, zero = 0;
    profile_builder_add_sample(builder, &stack, 1, &one, labels, 2);
    profile_builder_add_sample(builder, &stack, 1, &zero, NULL, 0);
    profile_builder_add_comment(builder, span_text(comment));
    profile_builder_add_comment(builder, SPAN_LITERAL("both"));
    struct profile *fields = profile_builder_fields(builder);
    fields->time_ns = time_ns;
    fields->duration_ns = 10;
    fields->period = time_ns % 100;
    fields->doc_url = profile_builder_string(builder, span_text(comment));
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static void runs_at_other_addresses_are_joined(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct profile *const runs[] = {run(arena, 0x400000, "id", 2050, "one", false),
                                          run(arena, 0x7f0000, "id", 1099, "two", true)};
    struct profile *merged = merge(runs, 2);
    assert_int_equal(merged->sample_count, 1);
    assert_int_equal(merged->values[0], 2);
    assert_int_equal(merged->mapping_count, 1);
    assert_int_equal(merged->locations[0].address, 0x400123);
    assert_int_equal(merged->time_ns, 1099);
    assert_int_equal(merged->duration_ns, 20);
    assert_int_equal(merged->period, 99);
    assert_int_equal(merged->comment_count, 3);
    assert_true(span_equal_text(profile_string(merged, merged->doc_url), "one"));
    profile_destroy(merged);
}

static void other_binaries_stay_separate(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct profile *const runs[] = {run(arena, 0x400000, "id", 7, "one", false),
                                          run(arena, 0x400000, "other", 7, "one", false)};
    struct profile *merged = merge(runs, 2);
    assert_int_equal(merged->mapping_count, 2);
    assert_int_equal(merged->sample_count, 2);
    profile_destroy(merged);
}

static void assert_refused_merge(const struct profile *a, const struct profile *b,
                                 const char *words)
{
    struct profile *merged = NULL;
    struct err err = {0};
    const struct profile *const both[] = {a, b};
    assert_int_equal(merge_profiles(both, 2, NULL, &merged, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, words));
    assert_null(merged);
}

static void decimals_of_any_number_are_summed(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct profile *const files[] = {folded_profile(arena, "a;b 2.5\na;c 1.0\n"),
                                           folded_profile(arena, "a;b 7\na 2\n"),
                                           folded_profile(arena, "a;b 1.125\na;c 0.25\n")};
    struct profile *merged = merge(files, 3);
    assert_type(merged, 0, "samples", "count/1000");
    assert_stacks(merged, "", "a 2\na;b 10.625\na;c 1.25\n");
    profile_destroy(merged);
}

static const struct profile *timed(struct arena *arena, const char *type, const char *unit,
                                   int64_t value, int64_t period)
{
    struct maker maker = new_maker((const char *const[]){type, NULL});
    set_period(&maker, "cpu", unit, period);
    ADD(&maker, "work", value);
    struct profile *profile = take(&maker);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static void values_and_periods_are_those_of_the_finest_unit(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct profile *const runs[] = {timed(arena, "cpu/milliseconds", "seconds", 3, 1),
                                          timed(arena, "cpu/us", "milliseconds", 5, 10)};
    struct profile *merged = merge(runs, 2);
    assert_type(merged, 0, "cpu", "us");
    assert_stacks(merged, "", "main;work 3005\n");
    assert_int_equal(merged->period, 1000);
    assert_true(span_equal_text(profile_string(merged, merged->period_type.unit), "milliseconds"));
    profile_destroy(merged);
}

static void different_kinds_are_refused(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    const struct profile *folded = folded_profile(arena, "a 1\n");
    assert_refused_merge(folded, run(arena, 0, "", 1, "", false), "sample type 0 of profile 2");
    assert_refused_merge(folded_profile(arena, "a 1.125\n"),
                         folded_profile(arena, "a 9223372036854776\n"), "is too large for");
    assert_refused_merge(timed(arena, "cpu/ns", "ns", 1, 1), timed(arena, "cpu/bytes", "ns", 1, 1),
                         "sample type 0 of profile 2");
    assert_refused_merge(timed(arena, "cpu/ns", "ns", 1, 1), timed(arena, "cpu/ns", "bytes", 1, 1),
                         "another period type");
    struct profile *merged = NULL;
    struct err err;
    assert_int_equal(merge_profiles(NULL, 0, NULL, &merged, &err), ERR_INVALID);
    const struct profile *const both[] = {folded, folded};
    const struct profile_limits limits = {.memory_bytes = 10};
    assert_int_equal(merge_profiles(both, 2, &limits, &merged, &err), ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_add_up),
        cmocka_unit_test(the_order_of_labels_does_not_count),
        cmocka_unit_test(a_long_name_of_many_mappings_costs_once),
        cmocka_unit_test(runs_at_other_addresses_are_joined),
        cmocka_unit_test(other_binaries_stay_separate),
        cmocka_unit_test(decimals_of_any_number_are_summed),
        cmocka_unit_test(values_and_periods_are_those_of_the_finest_unit),
        cmocka_unit_test(different_kinds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
